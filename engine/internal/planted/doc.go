// Package planted checks whether the tests notice a broken promise.
//
// Its tests have a list of deliberate faults in the code outside of the pure core: the loops of
// the engine, the stores, the agents' processes, the language and the command line. The pure
// core and the simulation have their own lists: tests with random runs must find those faults.
// Each entry names the promise that it breaks, the declaration that it changes, and the test
// that must fail because of the change:
//
//	{
//		name: "a lease that has passed cannot be renewed",
//		in:   "engine/store/postgres.memberTick",
//		old:  "AND lease_until > pg_catalog.clock_timestamp() RETURNING",
//		new:  "RETURNING",
//		by:   catches("engine/store/postgres", "^TestStore$/^tick$"),
//	},
//
// An entry names a declaration by package and symbol, so the entry stays valid when code moves to
// another file of the package. White space in the field `old` does not matter. For an entry that no
// test can catch, the field `same` says why users cannot see a difference.
//
// `make mutants` plants every fault. `make test` checks that all entries fit the source. It also
// plants a sample of the faults, always the same one: after 15 s it plants no further fault. To
// plant the faults of one area, or one fault:
//
//	MUTANTS=all go test -v ./engine/internal/planted -run TestPlanted/sqlite
package planted
