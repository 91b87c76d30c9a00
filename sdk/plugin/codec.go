package plugin

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/saga-engine/engine/sdk"
	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
)

// codec is a gRPC codec. It encodes and decodes batches itself. For all other messages it uses
// gRPC's own protobuf codec.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(grpcproto.Name)} }

// A batch is a message that encodes itself. The method `bound` returns the largest size, in
// bytes, that the encoded message can have.
type batch interface {
	bound() int
	append(b []byte) []byte
}

// A parser is a message that decodes itself from bytes. It keeps no reference to the bytes.
type parser interface{ parse(b []byte) error }

// Marshal encodes a message.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(batch)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	buf := batches.Get(m.bound())
	*buf = m.append((*buf)[:0])
	return mem.BufferSlice{mem.NewBuffer(buf, &batches)}, nil
}

// Unmarshal decodes a message.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(parser)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	buf := data.MaterializeToBuffer(&batches)
	defer buf.Free()
	return m.parse(buf.ReadOnlyData())
}

// frame is the largest number of bytes that an encoded call or answer needs in addition to
// its texts and payloads: for tags, lengths and numbers.
const frame = 160

func appendString[T ~string | ~[]byte](b []byte, n protowire.Number, s T) []byte {
	if len(s) == 0 {
		return b
	}
	b = protowire.AppendTag(b, n, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendNumber(b []byte, n protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	b = protowire.AppendTag(b, n, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(v))
}

// openField appends the beginning of a nested message whose length is not known yet. It returns
// the longer slice, and the index where the content begins. The caller appends the content and
// then calls shutField with this index, which writes the length.
func openField(b []byte, n protowire.Number) (out []byte, at int) {
	b = protowire.AppendTag(b, n, protowire.BytesType)
	return append(b, 0), len(b) + 1
}

func shutField(b []byte, at int) []byte {
	size := len(b) - at
	if size < 1<<7 {
		b[at-1] = byte(size)
		return b
	}
	extra := protowire.SizeVarint(uint64(size)) - 1
	b = append(b, make([]byte, extra)...)
	copy(b[at+extra:], b[at:at+size])
	protowire.AppendVarint(b[:at-1], uint64(size))
	return b
}

// callBound returns the largest size, in bytes, that a call can have in a batch.
func callBound(r *sdk.Request) int {
	n := frame + len(r.Action) + len(r.Input) + len(r.IdempotencyKey) + len(r.ForwardKey) + len(r.Run) +
		len(r.Workflow) + len(r.Step)
	if r.Checkpoint != nil {
		n += len(r.Checkpoint.Blob)
	}
	return n
}

func appendCall(b []byte, r *sdk.Request) []byte {
	b = appendString(b, 1, r.Action)
	b = appendNumber(b, 2, int64(r.Purpose))
	b = appendString(b, 3, r.Input)
	b = appendString(b, 4, r.IdempotencyKey)
	b = appendString(b, 5, r.ForwardKey)
	b = appendNumber(b, 6, r.CompleteBy.UnixNano())
	b = appendNumber(b, 7, int64(r.Remaining))
	b = appendString(b, 8, r.Run)
	b = appendString(b, 9, r.Workflow)
	b = appendString(b, 10, r.Step)
	b = appendNumber(b, 11, int64(int32(r.Attempt)))
	b = appendNumber(b, 12, r.Fence)
	if r.Checkpoint != nil {
		b = appendCheckpoint(b, 14, r.Checkpoint)
	}
	return b
}

func appendCheckpoint(b []byte, n protowire.Number, c *sdk.Checkpoint) []byte {
	b, at := openField(b, n)
	b = appendNumber(b, 1, c.Number)
	b = appendString(b, 2, c.Blob)
	return shutField(b, at)
}

// A field is one encoded field of a message. The protocol has only numbers, doubles, and
// fields with a length: texts, bytes and nested messages.
type field struct {
	number protowire.Number
	value  uint64 // value of a number, or the bits of a double
	data   []byte // content of a field with a length
}

var errGarbage = errors.New("plugin: a message that cannot be decoded")

// fields decodes the fields of a message and calls the function `take` for every field. If a field
// has a wire type that the protocol does not use, the field number that `take` gets is 0. The
// function `fields` returns errGarbage if the bytes are not a message. If a call of `take` returns
// an error, `fields` returns this error.
func fields(b []byte, take func(f field) error) error {
	for len(b) > 0 {
		number, form, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errGarbage
		}
		b = b[n:]
		f := field{number: number}
		switch form {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			f.data, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, form, b)
			f.number = 0
		}
		if n < 0 {
			return errGarbage
		}
		b = b[n:]
		if err := take(f); err != nil {
			return err
		}
	}
	return nil
}

// names holds texts that occur often in requests, so that each text is allocated only once.
type names map[string]string

// maxNames is the largest number of texts that a map of type names holds. Without a limit the
// map could become large, because the name of a step can contain the key of an instance.
const maxNames = 1000

func (m names) get(b []byte) string {
	if s, ok := m[string(b)]; ok {
		return s
	}
	if len(m) >= maxNames {
		clear(m)
	}
	s := string(b)
	m[s] = s
	return s
}

// request decodes the protobuf message Call into r. If the purpose is unknown, r.Purpose
// stays 0, which is invalid.
func (m names) request(b []byte, r *sdk.Request) error {
	r.CompleteBy = time.Unix(0, 0)
	return fields(b, func(f field) error {
		switch f.number {
		case 1:
			r.Action = m.get(f.data)
		case 2:
			if p := int64(f.value); p >= int64(sdk.PurposeDo) && p <= int64(sdk.PurposeLookup) {
				r.Purpose = sdk.Purpose(p)
			}
		case 3:
			r.Input = bytes.Clone(f.data)
		case 4:
			r.IdempotencyKey = string(f.data)
		case 5:
			r.ForwardKey = string(f.data)
		case 6:
			r.CompleteBy = time.Unix(0, int64(f.value))
		case 7:
			r.Remaining = time.Duration(f.value)
		case 8:
			r.Run = string(f.data)
		case 9:
			r.Workflow = m.get(f.data)
		case 10:
			r.Step = m.get(f.data)
		case 11:
			r.Attempt = int(int32(f.value))
		case 12:
			r.Fence = int64(f.value)
		case 14:
			r.Checkpoint = &sdk.Checkpoint{}
			return parseCheckpoint(f.data, r.Checkpoint)
		}
		return nil
	})
}

func parseCheckpoint(b []byte, c *sdk.Checkpoint) error {
	return fields(b, func(f field) error {
		switch f.number {
		case 1:
			c.Number = int64(f.value)
		case 2:
			c.Blob = bytes.Clone(f.data)
		}
		return nil
	})
}

func appendReply(b []byte, r *sdk.Reply) []byte {
	b = appendNumber(b, 1, int64(r.Outcome))
	b = appendString(b, 2, r.Output)
	b = appendString(b, 3, strings.ToValidUTF8(r.Code, ""))
	b = appendString(b, 4, strings.ToValidUTF8(r.Message, ""))
	if r.Permanent {
		b = appendNumber(b, 5, 1)
	}
	return appendNumber(b, 6, int64(r.RetryAfter))
}

func parseReply(b []byte, r *sdk.Reply) error {
	return fields(b, func(f field) error {
		switch f.number {
		case 1:
			if o := pb.Outcome(f.value); o >= pb.Outcome_OUTCOME_RESULT && o <= pb.Outcome_OUTCOME_NOT_DONE {
				r.Outcome = sdk.Outcome(o)
			}
		case 2:
			r.Output = bytes.Clone(f.data)
		case 3:
			r.Code = string(f.data)
		case 4:
			r.Message = string(f.data)
		case 5:
			r.Permanent = f.value != 0
		case 6:
			r.RetryAfter = time.Duration(f.value)
		}
		return nil
	})
}
