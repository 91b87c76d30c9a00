// Package operator says to runs what people ask of them: cancel, retry, settle and the
// other verbs.
//
// A verb becomes a message in the inbox of its run. The engine that owns the run decides
// it, now or when there is one. The package needs no running engine and owns no run.
package operator
