package value

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// StringOf converts a value to a string. A null or unknown value is an error.
func StringOf(v cty.Value) (string, error) {
	v, _ = v.UnmarkDeep()
	s, err := ConvertScalar(v, cty.String)
	switch {
	case err != nil:
		return "", err
	case s.IsNull():
		return "", errors.New("a value is required, this is null")
	case !s.IsKnown():
		return "", errors.New("the value is not known")
	}
	return s.AsString(), nil
}

// BoolOf converts a value to a bool. A null or unknown value is an error.
func BoolOf(v cty.Value) (bool, error) {
	v, _ = v.UnmarkDeep()
	b, err := convert.Convert(v, cty.Bool)
	switch {
	case err != nil:
		return false, err
	case b.IsNull():
		return false, errors.New("true or false is required, this is null")
	case !b.IsKnown():
		return false, errors.New("the value is not known")
	}
	return b.True(), nil
}

// StringsOf converts a value to a list of strings. If the value, or one of its elements, is null
// or unknown, that is an error.
func StringsOf(v cty.Value) ([]string, error) {
	v, _ = v.UnmarkDeep()
	l, err := convert.Convert(v, cty.List(cty.String))
	switch {
	case err != nil:
		return nil, errors.New("a list of strings is required")
	case l.IsNull():
		return nil, errors.New("a list of strings is required, this is null")
	case !l.IsWhollyKnown():
		return nil, errors.New("the value is not known")
	}
	out := make([]string, 0, l.LengthInt())
	for _, e := range l.AsValueSlice() {
		if e.IsNull() {
			return nil, errors.New("a list of strings is required, one is null")
		}
		out = append(out, e.AsString())
	}
	return out, nil
}

// WholeNumber converts a value to an int. A value that is not a whole number, is less than lo,
// or is greater than hi, is an error.
func WholeNumber(v cty.Value, lo, hi int) (int, error) {
	f, err := NumberOf(v)
	if err != nil || !f.IsInt() || f.Cmp(big.NewFloat(float64(lo))) < 0 || f.Cmp(big.NewFloat(float64(hi))) > 0 {
		if hi >= math.MaxInt32 {
			return 0, fmt.Errorf("a whole number of at least %d is required", lo)
		}
		return 0, fmt.Errorf("a whole number from %d to %d is required", lo, hi)
	}
	n, _ := f.Int64()
	return int(n), nil
}

// NumberOf converts a value to a number. A null or unknown value is an error.
func NumberOf(v cty.Value) (*big.Float, error) {
	v, _ = v.UnmarkDeep()
	n, err := ConvertScalar(v, cty.Number)
	switch {
	case err != nil:
		return nil, err
	case n.IsNull():
		return nil, errors.New("a number is required, this is null")
	case !n.IsKnown():
		return nil, errors.New("the value is not known")
	}
	return n.AsBigFloat(), nil
}
