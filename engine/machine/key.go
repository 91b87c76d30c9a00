package machine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// forwardKey is the idempotency key of a node's work: the same for all its
// attempts, on whatever engine, and for no other call (S26, S29). It holds
// neither attempt number nor time nor list position.
func (d *decider) forwardKey(n *model.Node) string {
	return forwardKey(d.run.ID, d.step(n).Name, n)
}

func forwardKey(run RunID, step string, n *model.Node) string {
	if n.BizKey != "" {
		return n.BizKey
	}
	return idempotencyKey(run, step, n.Key, "do", int(n.Gen))
}

// undoKey is the idempotency key of a node's undo.
func (d *decider) undoKey(n *model.Node) string {
	return undoKey(d.run.ID, d.step(n).Name, n)
}

func undoKey(run RunID, step string, n *model.Node) string {
	if n.BizKey != "" {
		return n.BizKey + ":undo"
	}
	return idempotencyKey(run, step, n.Key, "undo", int(n.Gen))
}

// Keys returns the idempotency keys of a node's work and of its undo, whether it has one or
// not. wf must be the run's workflow.
func Keys(wf *dsl.Workflow, r *model.Run, n *model.Node) (work, undo string) {
	step := wf.Steps[n.Step].Name
	return forwardKey(r.ID, step, n), undoKey(r.ID, step, n)
}

// idempotencyKey hashes what identifies a call. Every part is preceded by its
// length, so that no two lists of parts read alike. The zero after the key is
// the repeat index of a step without repeat.
func idempotencyKey(id RunID, step, key, direction string, generation int) string {
	var short [128]byte
	b := short[:0]
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	for _, part := range [...]string{step, key, direction} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(generation))
	sum := sha256.Sum256(b)
	var text [32]byte
	hex.Encode(text[:], sum[:16])
	return string(text[:])
}
