// Package wire writes records and events as the journal's bytes, and reads them.
//
// Input is records (machine.Record) or bytes. Output is bytes, records, or a state to which the
// records were applied. The package uses neither stores nor keys: package journal seals rows
// and chains them.
//
// The journal's bytes are a format number, the number of records, and then each record. A
// record consists of its length (unless it is the only record), its time, its event, the fields
// of the run that it changes, and the fields of each node that it changes. Numbers are varints.
// Times are written as distances from the record's time. A text or value that occurs twice in a
// record is written once. A value that is already part of the run's state is written as a
// reference.
//
// There are two additional short forms. The code of each form is in separate files. So a
// developer can measure how much a form saves, and can remove it for new journals:
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
