// Package wire writes records and events as the journal's bytes, and reads them.
//
// In: records (machine.Record) or bytes. Out: bytes, records, or a state into which the
// records were folded. It touches neither stores nor keys: package journal seals rows and
// chains them.
//
// The journal's bytes are a format number, the number of records, and then each record: its
// length unless it is the only one, its time, its event, the fields of the run that it
// changes, and those of each node. Numbers are varints. Times are relative to the record's.
// A text or value that occurs twice in a record is written once; a value that the run has
// already is a reference.
//
// Two short forms lie on top, each in files of its own, so that what they save can be
// measured and each can be removed for new journals:
//   - Templates (template.go, runtemplate.go): a step that starts or ends writes only the
//     fields that do not follow from the event. The seam is templateOf and runTemplateOf, which
//     choose a template or none.
//   - The header of a single record (header.go): a row of one record leaves out the format,
//     the number of records and the time, which the row has. The seam is CutSingle.
//
// Invariants:
//   - What was written once is read for ever: golden journals of every format are tests of
//     package machine.
//   - Reading what was written gives the same record, and folding bytes gives the same state
//     as applying records.
//   - Damaged bytes end in ErrCorrupt or ErrFormat, never in a panic or in much memory.
package wire
