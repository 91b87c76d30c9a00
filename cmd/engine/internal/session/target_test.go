package session

import (
	"testing"
)

func TestWithoutPassword(t *testing.T) {
	for _, c := range []struct{ dsn, want string }{
		{"postgres://joe:hunter2@db/x?sslmode=disable", "postgres://joe:xxxxx@db/x?sslmode=disable"},
		{"postgres://db/x?user=joe&password=hunter2", "postgres://db/x?password=xxxxx&user=joe"},
		{"postgres://db/x?sslkey=k.pem&sslpassword=hunter2", "postgres://db/x?sslkey=k.pem&sslpassword=xxxxx"},
		{"postgres://joe:hunter2@db:port/x", "the database of --dsn"},
		{"postgres://db/x", "postgres://db/x"},
	} {
		if got := withoutPassword(c.dsn); got != c.want {
			t.Errorf("withoutPassword(%s) = %s, want %s", c.dsn, got, c.want)
		}
	}
}
