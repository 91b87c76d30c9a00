-- Stores an order and submits its run, in one transaction:
--
--   psql "$DSN" -v order=o-7 -v amount=1200 -f submit.sql
--
-- Both happen, or neither. If you do not know whether the transaction committed, run it again.
\set ON_ERROR_STOP on
BEGIN;
INSERT INTO app.orders (id, item, amount, country) VALUES (:'order', 'mug', :amount, 'DE') ON CONFLICT DO NOTHING;
SELECT engine.submit('process_order', jsonb_build_object('order_id', :'order'::text), 'order/' || :'order',
  reply_to => 'table:orders', correlation => :'order') AS run \gset
UPDATE app.orders SET run = :'run' WHERE id = :'order';
COMMIT;

-- What has become of the order: its submission waits or was refused, or its run has a state.
SELECT run, status, refused FROM engine.submissions WHERE run = :'run'
UNION ALL SELECT run, state, NULL FROM engine.runs WHERE workflow = 'process_order' AND key = :'order';
