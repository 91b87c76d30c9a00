package value

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// MaxDigits is how many decimal digits a number may have. The digits before and after the
// decimal point count together.
const MaxDigits = 1000

// ErrDigits says that a number has more than MaxDigits digits.
var ErrDigits = errors.New("a number may have at most 1000 digits")

// log2of10 is the number of bits of one decimal digit.
const log2of10 = 3.3219280948873626

// ParseNumber parses a decimal number. The precision of the result is 512 bits, as in the
// library cty, or more for longer numbers. So NumberText can write the number again exactly.
func ParseNumber(s string) (cty.Value, error) {
	digits := 0
	for _, c := range s {
		if c == 'e' || c == 'E' {
			break
		}
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	if digits > MaxDigits {
		return cty.NilVal, ErrDigits
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if exp, err := strconv.Atoi(s[i+1:]); err == nil && exp > 0 {
			digits += min(exp, MaxDigits) // a positive exponent adds zeros before the decimal point
		}
	}
	prec := uint(max(512, math.Ceil(float64(digits)*log2of10)+64))
	f, _, err := big.ParseFloat(s, 10, prec, big.ToNearestEven)
	if err != nil {
		return cty.NilVal, errors.New("not a number")
	}
	if _, err := NumberText(f); err != nil {
		return cty.NilVal, err
	}
	return cty.NumberVal(f), nil
}

// NumberText returns a number as JSON. An integer is exact. A fraction is rounded to the decimal
// digits that are certain, because f has only a limited number of bits. So 0.1 + 0.2 is 0.3, as in
// decimal arithmetic. An infinite number, or a number of more than MaxDigits digits, is an error.
func NumberText(f *big.Float) (string, error) {
	if f.IsInf() {
		return "", errors.New("a number must be finite")
	}
	if f.Sign() == 0 {
		return "0", nil
	}
	// Check the exponent first: the text of 1e900000000 would take a gigabyte.
	if e := float64(f.MantExp(nil)); e > (MaxDigits+1)*log2of10 || e < -(MaxDigits+1)*log2of10 {
		return "", ErrDigits
	}
	if n, acc := f.Int64(); acc == big.Exact {
		return strconv.FormatInt(n, 10), nil // the result of the code below is the same, but takes longer
	}
	if f.IsInt() {
		s := f.Text('f', 0)
		if len(strings.TrimPrefix(s, "-")) > MaxDigits {
			return "", ErrDigits
		}
		return s, nil
	}
	sure := int(float64(f.Prec())/log2of10) - 3
	if f.Prec() == 0 || sure < 15 {
		sure = 15
	}
	s := plainDecimal(f.Text('e', sure-1))
	if digits := len(s) - strings.Count(s, "-") - strings.Count(s, "."); digits > MaxDigits+1 {
		return "", ErrDigits
	}
	return s, nil
}

// plainDecimal turns "1.2300e-03" into "0.00123".
func plainDecimal(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	mant, expText, _ := strings.Cut(s, "e")
	exp := 0
	neg := strings.HasPrefix(expText, "-")
	for _, c := range strings.TrimLeft(expText, "+-") {
		exp = exp*10 + int(c-'0')
	}
	if neg {
		exp = -exp
	}
	digits := strings.TrimRight(strings.Replace(mant, ".", "", 1), "0")
	point := 1 + exp // number of digits before the point; if negative, -point zeros follow the point
	switch {
	case point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + digits
	case point >= len(digits):
		return sign + digits + strings.Repeat("0", point-len(digits))
	}
	return sign + digits[:point] + "." + digits[point:]
}

// Numeral returns how many bytes at the beginning of a text could belong to a number. It returns
// 0 if the text does not begin like a number.
func Numeral(s string) int64 {
	return int64(len(s) - len(strings.TrimLeft(s, "0123456789.eE+-_")))
}

// Exponent returns the absolute value of a number's binary exponent. That is approximately the
// number of bits before the binary point. For a number below 1, it is approximately the number of
// zeros after the binary point. Exponent returns 0 for a value that is not a known number, or is
// infinite.
func Exponent(v cty.Value) int64 {
	v, _ = v.Unmark()
	if v.Type() != cty.Number || !v.IsKnown() || v.IsNull() {
		return 0
	}
	f := v.AsBigFloat()
	if f.IsInf() {
		return 0
	}
	e := int64(f.MantExp(nil))
	return max(e, -e)
}
