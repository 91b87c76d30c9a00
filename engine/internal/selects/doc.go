// Package selects works on the firings of selections: it starts one run for each row that a query
// returns.
//
// In: open firings, pages of rows and published workflows. Out: submitted runs, and the progress of
// firings. All engines of a store look for firings. A row never starts two runs in a firing, for
// two reasons:
//
//   - The name of a run is computed from its schedule, its tick and its key, and a store accepts
//     each name once. So an engine may die after it has submitted the runs of a page and before it
//     has stored the progress: the next engine reads the page again, and finds that the runs exist.
//   - An engine stores progress only if the version of the firing is still the one that the engine
//     has read. So an engine that has lost a firing to another engine changes nothing.
//
// The source files form layers, lowest first: name, plan; page; work; retry.
package selects
