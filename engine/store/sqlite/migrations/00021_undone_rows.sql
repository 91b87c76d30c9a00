-- +goose Up

-- A parent may undo a child run that has succeeded (10). One row may hold several decisions about
-- the child. So its state may become not only compensating (5), but also what follows: paused (4),
-- compensation_failed (7), failed (11) or compensated (12).
DROP TRIGGER run_transition;
-- +goose StatementBegin
CREATE TRIGGER run_transition BEFORE UPDATE OF state ON run
  WHEN OLD.state <> NEW.state AND (OLD.state >= 10 AND NOT (OLD.state = 10 AND NEW.state IN (4, 5, 7, 11, 12)) OR NEW.state = 1)
BEGIN
  SELECT RAISE(ABORT, 'a run in this state cannot become that');
END;
-- +goose StatementEnd
