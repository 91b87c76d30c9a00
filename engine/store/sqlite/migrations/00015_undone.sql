-- +goose Up

-- A child run that has succeeded is undone with its parent. If the child has nothing to undo, or if
-- its undo fails before a call, the run gets its next state at once, without the state compensating
-- (5). So a succeeded run (10) may also become compensation_failed (7), failed (11) or compensated
-- (12).
DROP TRIGGER run_transition;
-- +goose StatementBegin
CREATE TRIGGER run_transition BEFORE UPDATE OF state ON run
  WHEN OLD.state <> NEW.state AND (OLD.state >= 10 AND NOT (OLD.state = 10 AND NEW.state IN (5, 7, 11, 12)) OR NEW.state = 1)
BEGIN
  SELECT RAISE(ABORT, 'a run in this state cannot become that');
END;
-- +goose StatementEnd
