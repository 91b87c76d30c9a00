package machine_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"reflect"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
)

// released are rows of a run as the first engines of format 2 and of format 3
// wrote them. Neither is ever written anew: journals hold such bytes.
var released = []struct{ name, two, three string }{
	{"the run starts",
		"0201870180e085cd8199980301808080808080800818722d30313233343536373839026b01167b226f72646572223a2230313233343536373839227d0c6d616e75616c06616e6ecdff02040201808080808080801001026b030003050a6f7264657206010100f76e040202020202020101010d7b2273746570223a227330227d0101023c020201818ece1c",
		"030180e085cd8199980301808080808080800818722d30313233343536373839026b01167b226f72646572223a2230313233343536373839227d0c6d616e75616c06616e6e01020a6f72646572060102010d7b2273746570223a227330227d7a"},
	{"a step ends and the next one starts",
		"020174c0e4c2cd8199980302000201137b226964223a2230313233343536373839227d020202008b90030c000101030001010203020100f76f0402020202020202010101277b2273746570223a227331222c22696e30223a7b226964223a2230313233343536373839227d7d0101023c020201818ece1c",
		"0301c0e4c2cd8199980302000201137b226964223a2230313233343536373839227d08020204020201277b2273746570223a227331222c22696e30223a7b226964223a2230313233343536373839227d7d7a"},
	{"a step fails and the first one is undone",
		"02019f0180e9ffcd8199980303020208676f6e6510666f7220676f6f640100818088e0090a020473310103018180bbdd8305040300908080e0ff060404020206020201267b22756e646f223a227330222c226f66223a7b226964223a2230313233343536373839227d7d0101018180bbdd830501043c060201818ece1c008790b0a0810112000001020401030e02010102c3010401010300819080a0800114010e0100",
		"030180e9ffcd8199980303020208676f6e6510666f7220676f6f6401008480a080270a02047331010302828c15040300908080e0ff060404020206020201267b22756e646f223a227330222c226f66223a7b226964223a2230313233343536373839227d7d010202828c1501043c0602027a008790b0a0810112000002020401030e02020102c3010402010300819080a0800114020e0200"},
	{"these three in one row",
		"0203870180e085cd8199980301808080808080800818722d30313233343536373839026b01167b226f72646572223a2230313233343536373839227d0c6d616e75616c06616e6ecdff02040201808080808080801001026b030003050a6f7264657206010100f76e040202020202020101010d7b2273746570223a227330227d0101023c020201818ece1c74c0e4c2cd8199980302000201137b226964223a2230313233343536373839227d020202008b90030c000101030001010203020100f76f0402020202020202010101277b2273746570223a227331222c22696e30223a7b226964223a2230313233343536373839227d7d0101023c020201818ece1c9f0180e9ffcd8199980303020208676f6e6510666f7220676f6f640100818088e0090a020473310103018180bbdd8305040300908080e0ff060404020206020201267b22756e646f223a227330222c226f66223a7b226964223a2230313233343536373839227d7d0101018180bbdd830501043c060201818ece1c008790b0a0810112000001020401030e02010102c3010401010300819080a0800114010e0100",
		"03035e80e085cd8199980301808080808080800818722d30313233343536373839026b01167b226f72646572223a2230313233343536373839227d0c6d616e75616c06616e6e01020a6f72646572060102010d7b2273746570223a227330227d7a50c0e4c2cd8199980302000201137b226964223a2230313233343536373839227d08020204020201277b2273746570223a227331222c22696e30223a7b226964223a2230313233343536373839227d7d7a960180e9ffcd8199980303020208676f6e6510666f7220676f6f6401008480a080270a02047331010302828c15040300908080e0ff060404020206020201267b22756e646f223a227330222c226f66223a7b226964223a2230313233343536373839227d7d010202828c1501043c0602027a008790b0a0810112000002020401030e02020102c3010402010300819080a0800114020e0200"},
	{"a step ends with an output the run had",
		"020174d0ef85cd8199980302020201137b226964223a2230313233343536373839227d020402018b90030c000101060001010203020100f76f0402020202020202010101277b2273746570223a227332222c22696e31223a7b226964223a2230313233343536373839227d7d0101023c020201818ece1c",
		"0301d0ef85cd8199980302020201137b226964223a2230313233343536373839227d080402060600020201277b2273746570223a227332222c22696e31223a7b226964223a2230313233343536373839227d7d7a"},
	{"the last step ends without output",
		"020120b8f785cd8199980302040200171406000101028b90020c000101010102030201",
		"0301b8f785cd819998030204020002060104"},
}

func fromHex(tb testing.TB, text string) []byte {
	tb.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// A record reads the same in either format, made into records or folded, and is
// written in the present one.
func TestFormatsReadAlike(t *testing.T) {
	for _, tt := range released {
		t.Run(tt.name, func(t *testing.T) {
			two, three := fromHex(t, tt.two), fromHex(t, tt.three)
			old, err := wire.Decode(two)
			if err != nil {
				t.Fatal(err)
			}
			now, err := wire.Decode(three)
			if err != nil {
				t.Fatal(err)
			}
			if len(now) != len(old) || len(now) == 0 {
				t.Fatalf("%d records, want %d", len(now), len(old))
			}
			for k := range old {
				if err := wire.Same(&old[k], &now[k]); err != nil {
					t.Error(err)
				}
			}
			if again, err := wire.Encode(old); err != nil || !bytes.Equal(again, three) {
				t.Errorf("written as\n%x (%v), want\n%x", again, err, three)
			}
			s, plain := machine.NewState(), machine.NewState()
			for _, r := range old {
				s.Apply(r)
			}
			var scratch wire.Reader
			if _, err := foldCounted(&scratch, plain, nil, three, nil); err != nil {
				t.Fatal(err)
			}
			if err := sameFold(s, plain); err != nil {
				t.Error(err)
			}
		})
	}
}

// So does an event: the times are the ones that are written differently.
func TestFormatsOfEvents(t *testing.T) {
	for _, tt := range []struct {
		until      time.Time
		two, three string
	}{
		{noon.Add(time.Millisecond), "0206060ed1cf8b9a83b2b0060866756c6c", "0306060ea19f97b486e4e00c0866756c6c"},
		{noon, "0206060e81c08b9a83b2b0060866756c6c", "0306060e82be98e01a0866756c6c"},
	} {
		want := machine.AttemptDeferred{Attempt: machine.AttemptID{Node: 3, Call: 7}, Until: tt.until, Why: "full"}
		for _, text := range []string{tt.two, tt.three} {
			if ev, err := wire.DecodeEvent(fromHex(t, text)); err != nil || !reflect.DeepEqual(ev, want) {
				t.Errorf("%s: got %+v (%v), want %+v", text, ev, err, want)
			}
		}
		if data, err := wire.EncodeEvent(want); err != nil || !bytes.Equal(data, fromHex(t, tt.three)) {
			t.Errorf("written as %x (%v), want %s", data, err, tt.three)
		}
	}
}

// What a usual change takes from the event must be there, its node must come
// after the one before, and kinds that do not exist are not read.
func TestFormatsDamaged(t *testing.T) {
	const accepted, timePassed = 1, 8 // as the journal numbers them
	row := fromHex(t, released[1].three)
	end := 2 + 8 + 3 + 2 + 0x13 // where the event ends: the run's patch, the number of nodes, the first one
	good := func(data []byte) bool { _, err := wire.Decode(data); return err == nil }
	if !good(row) || row[end] != 0x08 || row[end+3] != 0x04 {
		t.Fatalf("the row is not what is expected: %x", row[end:])
	}
	with := func(at int, b byte) []byte {
		data := bytes.Clone(row)
		data[at] = b
		return data
	}
	// What follows from an acceptance is all that changes, so that nothing is
	// missing but the event that it follows from.
	none := uint64(model.RunStateBit | model.RunBegunBit | model.RunIDBit | model.RunNameBit | model.RunStartedBit | model.RunLiveBit | model.RunWorkflowBit | model.RunStepsBit)
	changed := append(append(bytes.Clone(row[:10]), timePassed), binary.AppendUvarint(nil, (1^none)<<2|accepted)...)
	if plain := append(append(bytes.Clone(row[:10]), timePassed), 1<<2, 4, 0); !good(plain) {
		t.Fatalf("a record of one change of the run is not read: %x", plain)
	}
	noAnswer := append(append(bytes.Clone(row[:10]), timePassed), row[end:]...)
	for name, data := range map[string][]byte{
		"an end without an answer":      noAnswer,
		"a start of no run":             append(changed, 0),
		"a run's change of no kind":     with(end, 1<<2|3),
		"the end of a node before zero": with(11, 1),
		"the end of a call before zero": with(12, 1),
		"a node twice":                  with(end+4, 2<<1),
	} {
		if good(data) {
			t.Errorf("%s is read", name)
		}
	}
}
