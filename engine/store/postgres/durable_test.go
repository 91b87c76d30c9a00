package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/health"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// S48: what a standby is to have needs synchronous commits: whatever a database
// says, every record is written with them on, also behind a pooler, and the
// examination says that the database is set otherwise. A stricter setting is kept.
func TestRecordsAreCommittedSynchronously(t *testing.T) {
	for _, setting := range []string{"off", "local", "on", "remote_apply"} {
		for way, reach := range map[string]func(t testing.TB, dsn string) *Store{
			"directly":        open,
			"behind a pooler": func(t testing.TB, dsn string) *Store { return openPooled(t, newPooler(t, dsn)) },
		} {
			t.Run(setting+" "+way, func(t *testing.T) { checkSynchronous(t, setting, reach) })
		}
	}
}

// checkSynchronous checks what records are written with in a database that has the
// given synchronous_commit.
func checkSynchronous(t *testing.T, setting string, reach func(t testing.TB, dsn string) *Store) {
	weak := setting == "off" || setting == "local"
	dsn := migrated(t)
	db := raw(t, dsn)
	must(t, db, `CREATE TABLE public.seen (setting text)`)
	must(t, db, `CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO public.seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$`)
	must(t, db, `CREATE TRIGGER see AFTER INSERT ON engine.journal FOR EACH ROW EXECUTE FUNCTION public.see()`)
	must(t, db, `CREATE TRIGGER see AFTER INSERT ON engine.inbox FOR EACH ROW EXECUTE FUNCTION public.see()`)
	must(t, db, fmt.Sprintf(`ALTER DATABASE %q SET synchronous_commit = %s`, dbName(t, dsn), setting))

	b := benchOn(t, reach(t, dsn))
	if err := b.commit(t.Context(), b.create(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.Submit(t.Context(), b.w, b.create(2), naming.Names{Workflow: "w", Name: "o-2"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Post(t.Context(), store.Message{Run: status.RunID(1), Kind: store.MessageVerb, Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	rows, err := db.QueryContext(t.Context(), `SELECT setting FROM public.seen`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var written []string
	for rows.Next() {
		var got string
		if err := rows.Scan(&got); err != nil {
			t.Fatal(err)
		}
		written = append(written, got)
	}
	want := setting
	if weak {
		want = "on"
	}
	if err := rows.Err(); err != nil || !slices.Equal(written, []string{want, want, want}) {
		t.Errorf("records were written with synchronous_commit %q, err = %v, want 3 times %s", written, err, want)
	}
	found, err := open(t, dsn).Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said := false
	for _, f := range found {
		said = said || f.Name == "synchronous_commit" && f.Level != health.OK && strings.Contains(f.Message, setting)
	}
	if said != weak {
		t.Errorf("the examination speaks of it: %t, want %t: %+v", said, weak, found)
	}
}
