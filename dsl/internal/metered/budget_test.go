package metered

import "testing"

// TestOverrunStays: what the library catches does not save an expression.
func TestOverrunStays(t *testing.T) {
	m := &Meter{}
	if !m.Take(MaxCost, MaxMemory) || m.Take(1, 0) || m.Take(0, 0) || m.Over != overCost {
		t.Errorf("cost %d, over %v", m.Cost, m.Over)
	}
	m = &Meter{}
	if m.Take(0, MaxMemory+1) || m.Over != overMemory {
		t.Errorf("memory %d, over %v", m.Memory, m.Over)
	}
	m = &Meter{}
	if m.Take(1<<62, 1<<62) || m.Cost < 0 || m.Memory < 0 {
		t.Errorf("cost %d, memory %d", m.Cost, m.Memory)
	}
}

// TestNilAllowance: without an Allowance every cost is paid.
func TestNilAllowance(t *testing.T) {
	var none *Allowance
	if !none.pay(1<<60) || none.Over() || none.Spent() != 0 {
		t.Error("the nil Allowance bounds something")
	}
	if some := NewAllowance(5); !some.pay(5) || some.pay(1) || !some.Over() || some.Spent() != 5 {
		t.Errorf("an Allowance of 5: over %t, spent %d", some.Over(), some.Spent())
	}
}
