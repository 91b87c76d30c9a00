package wire

import (
	"bytes"
	"fmt"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
)

// ImageFormat is the number of the present format of an encoded image. An image is the state of a
// run, as a snapshot holds it. A reader accepts only this number, because the state can always be
// computed from the journal again. Format 1 had the ids of signals in ascending order. Format 2 has
// them in the order in which the run accepted the signals. Format 3 also has the ids of early
// signals.
const ImageFormat = 3

// AppendState encodes the image of a state, and appends the bytes to b. The state must not be
// changed afterwards, so the caller passes a Clone.
func AppendState(b []byte, s *machine.State) []byte {
	im := new(machine.Loader).Image(s)
	return appendImage(b, &im)
}

// SameState reports whether two states have the same content. For a value that occurs several times
// in a state, the state stores which of these places later records refer to. SameState does not
// compare this choice, because it may depend on whether an engine has read the run from an image or
// from the whole journal.
func SameState(a, b *machine.State) bool {
	plain := func(s *machine.State) []byte {
		im := new(machine.Loader).Image(s.Clone())
		im.Shared = nil
		return putImage(&encoder{general: true, full: true, bare: true, at: im.Run.Last}, &im)
	}
	return bytes.Equal(plain(a), plain(b))
}

// DecodeState returns the state from the bytes that AppendState appended. It returns ErrFormat for
// another format, and ErrCorrupt for any other bytes that it cannot read. The values of the state
// share memory with the parameter `data`.
func DecodeState(data []byte) (*machine.State, error) {
	im, err := decodeImage(data)
	if err != nil {
		return nil, err
	}
	return new(machine.Loader).Restore(im), nil
}

// appendImage encodes an image, and appends the bytes to b. Equal images have equal bytes. An image
// uses the same codecs of fields as a record, with two differences. First, a record may refer to a
// value that the state had before. For an image there is no state before, so the value itself
// follows each such reference. Second, if a list grows, a record holds only the new values of the
// list, but an image holds all values.
func appendImage(b []byte, im *model.Image) []byte {
	return putImage(&encoder{b: b, general: true, full: true, at: im.Run.Last}, im)
}

// putImage writes an image, and returns all bytes of the encoder.
func putImage(e *encoder, im *model.Image) []byte {
	e.uint(ImageFormat)
	e.uint(Format)
	e.uint(uint64(im.Run.Last))
	e.int(int64(im.Run.Records))
	mask := model.Diff(model.RunFields, &model.Run{Head: &model.NoHead, Rare: &model.NoRare}, &im.Run)
	e.uint(mask)
	put(e, runCodec, mask, &im.Run)
	putNodes(e, im)
	putSignals(e, im.Signals, true)
	e.uint(uint64(len(im.SignalIDs)))
	for _, id := range im.SignalIDs {
		e.bytes([]byte(id))
	}
	e.int(int64(im.LastSignal))
	e.int(im.Checkpoints)
	e.uint(uint64(len(im.Shared)))
	for _, o := range im.Shared {
		e.uint(uint64(o.Kind))
		e.uint(uint64(o.Node))
	}
	return e.b
}

// putNodes writes the nodes of an image that differ from a new node.
func putNodes(e *encoder, im *model.Image) {
	masks, changed := make([]uint64, len(im.Nodes)), 0
	for i, n := range im.Nodes {
		if masks[i] = model.Diff(model.NodeFields, newNode(&im.Run, i), n); masks[i] != 0 || len(n.Attempts) > 0 {
			changed++
		}
	}
	e.uint(uint64(len(im.Nodes)))
	e.uint(uint64(changed))
	next := 0
	for i, n := range im.Nodes {
		if masks[i] == 0 && len(n.Attempts) == 0 {
			continue
		}
		e.uint(uint64(i - next))
		next = i + 1
		e.uint(masks[i])
		put(e, nodeCodec, masks[i], n)
		e.uint(uint64(len(n.Attempts)))
		for k := range n.Attempts {
			a := &n.Attempts[k]
			mask := model.Diff(model.AttemptFields, &model.Attempt{}, a)
			e.int(int64(a.Call))
			e.uint(mask)
			put(e, attemptCodec, mask, a)
		}
	}
}

// newNode returns node i of a run as it was before any record changed it. The caller must not
// change the node.
func newNode(r *model.Run, i int) *model.Node {
	if i < int(r.Steps) {
		return model.NewNode(i)
	}
	return &model.Blank
}

// decodeImage reads the bytes that appendImage appended.
func decodeImage(data []byte) (model.Image, error) {
	d := &decoder{b: data, full: true, pool: new(pool)}
	if format := d.uint(); d.err == nil && format != ImageFormat {
		return model.Image{}, fmt.Errorf("%w: image of format %d, this engine reads %d", ErrFormat, format, ImageFormat)
	}
	if err := d.header(); err != nil {
		return model.Image{}, err
	}
	d.at = model.Instant(d.uint())
	im := model.Image{Run: model.Run{Head: new(model.Head), Rare: &model.NoRare, Last: d.at, Records: int32(d.index())}}
	mask := d.mask(len(runCodec))
	if mask&model.RareBits != 0 {
		im.Run.Rare = new(model.Rare)
	}
	get(d, runCodec, mask, &im.Run)
	if im.Run.Steps < 0 || im.Run.Steps > model.MaxSteps {
		d.fail()
	}
	getNodes(d, &im)
	im.Signals = getSignals(d, true)
	for range d.count() {
		im.SignalIDs = append(im.SignalIDs, string(d.bytes()))
	}
	im.LastSignal, im.Checkpoints = int32(d.index()), d.int()
	for range d.count() {
		im.Shared = append(im.Shared, model.Origin{Kind: model.OriginKind(d.uint()), Node: int32(d.small(int64(d.uint())))})
	}
	if d.err != nil || len(d.b) > 0 {
		return model.Image{}, fmt.Errorf("%w: image", ErrCorrupt)
	}
	return im, nil
}

// getNodes reads the nodes of an image.
func getNodes(d *decoder, im *model.Image) {
	count, changed := d.small(int64(d.uint())), d.count()
	// An image has a node for each step. All other nodes are instances, and each instance is one of
	// the `changed` nodes.
	if count > model.MaxNodes || count > int(im.Run.Steps)+changed || count < int(im.Run.Steps) {
		d.fail()
		return
	}
	im.Nodes = model.AppendSteps(make([]*model.Node, 0, count), 0, int(im.Run.Steps))
	next := 0
	for range changed {
		i := d.nodeNumber(&next, d.uint())
		if d.err != nil || i >= count || i > len(im.Nodes) {
			d.fail()
			return
		}
		n := newNode(&im.Run, i).Box()
		mask := d.mask(len(nodeCodec))
		if mask&model.MoreBits != 0 {
			n.More = new(model.More)
		}
		get(d, nodeCodec, mask, n)
		for range d.count() {
			a := model.Attempt{Call: int32(d.index())}
			get(d, attemptCodec, d.mask(len(attemptCodec)), &a)
			n.Attempts = append(n.Attempts, a)
		}
		if i < len(im.Nodes) {
			im.Nodes[i] = n
		} else {
			im.Nodes = append(im.Nodes, n)
		}
	}
	if len(im.Nodes) != count {
		d.fail()
	}
}
