package functions

import (
	"net"

	"github.com/apparentlymart/go-cidr/cidr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// network parses the first argument of a call, which is an address range, and returns the range.
func network(prefix cty.Value) (*net.IPNet, error) {
	_, n, err := net.ParseCIDR(prefix.AsString())
	if err != nil {
		return nil, function.NewArgErrorf(0, `prefix is an address range such as "10.0.0.0/16"`)
	}
	return n, nil
}

var (
	cidrHostFunc = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "prefix", Type: cty.String}, {Name: "hostnum", Type: cty.Number}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			n, err := network(args[0])
			if err != nil {
				return cty.NilVal, err
			}
			if !args[1].AsBigFloat().IsInt() {
				return cty.NilVal, function.NewArgErrorf(1, "hostnum is a whole number")
			}
			num, _ := args[1].AsBigFloat().Int(nil)
			ip, err := cidr.HostBig(n, num)
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(ip.String()), nil
		},
	})
	cidrNetmaskFunc = textFunction("prefix", func(s string) (cty.Value, error) {
		n, err := network(cty.StringVal(s))
		if err != nil {
			return cty.NilVal, err
		}
		if len(n.Mask) != net.IPv4len {
			return cty.NilVal, function.NewArgErrorf(0, "IPv6 ranges have no netmask")
		}
		return cty.StringVal(net.IP(n.Mask).String()), nil
	})
	cidrSubnetFunc = function.New(&function.Spec{
		Params: []function.Parameter{
			{Name: "prefix", Type: cty.String}, {Name: "newbits", Type: cty.Number}, {Name: "netnum", Type: cty.Number},
		},
		Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			n, err := network(args[0])
			if err != nil {
				return cty.NilVal, err
			}
			bits, err := value.WholeNumber(args[1], 0, 128)
			if err != nil {
				return cty.NilVal, function.NewArgError(1, err)
			}
			if !args[2].AsBigFloat().IsInt() {
				return cty.NilVal, function.NewArgErrorf(2, "netnum is a whole number")
			}
			num, _ := args[2].AsBigFloat().Int(nil)
			sub, err := cidr.SubnetBig(n, bits, num)
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(sub.String()), nil
		},
	})
	cidrSubnetsFunc = function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "prefix", Type: cty.String}},
		VarParam: &function.Parameter{Name: "newbits", Type: cty.Number},
		Type:     function.StaticReturnType(cty.List(cty.String)),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			n, err := network(args[0])
			if err != nil {
				return cty.NilVal, err
			}
			start, _ := n.Mask.Size()
			if len(args) == 1 {
				return cty.ListValEmpty(cty.String), nil
			}
			var out []cty.Value
			var current *net.IPNet
			for i, a := range args[1:] {
				bits, err := value.WholeNumber(a, 1, 128)
				if err != nil {
					return cty.NilVal, function.NewArgError(1+i, err)
				}
				if current == nil {
					if current, err = cidr.Subnet(n, bits, 0); err != nil {
						return cty.NilVal, err
					}
				} else {
					next, over := cidr.NextSubnet(current, start+bits)
					if over || !n.Contains(next.IP) {
						return cty.NilVal, function.NewArgErrorf(0, "the range is too small for these subnets")
					}
					current = next
				}
				out = append(out, cty.StringVal(current.String()))
			}
			return cty.ListVal(out), nil
		},
	})
	// cidrContainsFunc returns whether an address range contains an address, or all addresses of
	// another range.
	cidrContainsFunc = textPair("prefix", "address", cty.Bool, func(prefix, address string) (cty.Value, error) {
		n, err := network(cty.StringVal(prefix))
		if err != nil {
			return cty.NilVal, err
		}
		if ip := net.ParseIP(address); ip != nil {
			return cty.BoolVal(n.Contains(ip)), nil
		}
		_, inner, err := net.ParseCIDR(address)
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(1, `address is an address such as "10.0.1.5", or a range such as "10.0.0.0/24"`)
		}
		first, last := cidr.AddressRange(inner)
		return cty.BoolVal(n.Contains(first) && n.Contains(last)), nil
	})
)
