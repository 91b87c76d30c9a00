// Package wire writes records and events as the journal's bytes, and reads them.
//
// In: records (machine.Record) or bytes. Out: bytes, records, or a state into which the
// records were folded. The package uses neither stores nor keys: package journal seals rows
// and chains them.
//
// The journal's bytes are a format number, the number of records, and then each record. A
// record consists of its length (unless it is the only record), its time, its event, the
// fields of the run that it changes, and the fields of each node that it changes. Numbers
// are varints. Times are relative to the record's time. A text or value that occurs twice in
// a record is written once. A value that the run has already is written as a reference.
//
// There are two additional short forms. Each has files of its own, so that its savings can
// be measured and it can be removed for new journals:
//   - Templates (template.go, runtemplate.go): for a step that starts or ends, only the
//     fields are written that a reader cannot compute from the event. templateOf and
//     runTemplateOf choose a template or none.
//   - The header of a single record (header.go): a row with one record omits the format, the
//     number of records, and the time, which the row stores. CutSingle removes the header.
//
// Invariants:
//   - Bytes that were written once can be read for ever. Golden journals of every format are
//     tests of package machine.
//   - Reading written bytes gives the same record. Folding bytes gives the same state as
//     applying records.
//   - Damaged bytes give ErrCorrupt or ErrFormat, never a panic, and never use much memory.
package wire
