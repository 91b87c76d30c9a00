// Package planted asks whether the tests would notice if a promise were broken.
//
// Its tests hold a list of deliberate faults in the shell code: the loops of the
// engine, the stores, the agents' processes, the language and the command line.
// (The pure core and the simulation have lists of their own, which random worlds
// must catch.) Each entry names the promise that it breaks, the declaration that
// it changes, and the test that must fail while the change is in place:
//
//	{
//		name: "a lease that has passed cannot be renewed",
//		in:   "engine/store/postgres.memberTick",
//		old:  "AND lease_until > pg_catalog.clock_timestamp() RETURNING",
//		new:  "RETURNING",
//		by:   catches("engine/store/postgres", "^TestStore$/^tick$"),
//	},
//
// The declaration is a symbol of a package, so an entry survives when code moves
// to another file of the package. White space in old does not matter. An entry
// that no test can catch says in same why nobody could see the difference.
//
// `make mutants` plants every fault. `make test` checks that all entries fit the
// source, and plants a sample that changes from day to day, for about a minute.
// To plant the faults of one area, or one fault:
//
//	MUTANTS=all go test -v ./engine/internal/planted -run TestPlanted/sqlite
package planted
