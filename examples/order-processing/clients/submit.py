"""Stores an order and submits its run, in one transaction:

    python3 submit.py "$DSN" o-8 1200

Both happen, or neither. If you do not know whether the transaction committed, run it again. On Debian,
the package python3-psycopg2 has the driver. The newer driver psycopg has the same calls.
"""

import json
import sys

try:
    import psycopg2 as driver
except ImportError:
    import psycopg as driver


def place(connection, order, amount):
    """Stores an order, and returns the public id of its run."""
    with connection, connection.cursor() as cursor:  # commits at the end, or rolls back after an error
        cursor.execute(
            "INSERT INTO app.orders (id, item, amount, country) VALUES (%s, 'mug', %s, 'DE') ON CONFLICT DO NOTHING",
            (order, amount),
        )
        cursor.execute(
            "SELECT engine.submit('process_order', %s::jsonb, %s, reply_to => 'table:orders', correlation => %s)",
            (json.dumps({"order_id": order}), "order/" + order, order),
        )
        run = cursor.fetchone()[0]
        cursor.execute("UPDATE app.orders SET run = %s WHERE id = %s", (run, order))
        return run


def main():
    dsn, order, amount = sys.argv[1:]
    print(place(driver.connect(dsn), order, int(amount)))


if __name__ == "__main__":
    main()
