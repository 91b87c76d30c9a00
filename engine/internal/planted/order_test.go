package planted

// orderFaults break promises about what follows a failed attempt, and about points in time.
var orderFaults = []fault{
	{
		name: "a cool-down that fits comes before catch",
		in:   "engine/machine.forward.follow",
		old:  "if again && d.coolDown(i) {\n\t\treturn\n\t}\n\tif late {\n\t\tm = d.noTimeLeft(i, m)\n\t}\n\tif d.catches(i, m) {\n\t\treturn\n\t}",
		new:  "if late {\n\t\tm = d.noTimeLeft(i, m)\n\t}\n\tif d.catches(i, m) {\n\t\treturn\n\t}\n\tif again && d.coolDown(i) {\n\t\treturn\n\t}",
		by:   catches("engine/machine", "^TestOrderAfterAFailedAttempt$"),
	},
	{
		name: "the offset of a point in time counts",
		in:   "dsl/internal/link.parseLimit",
		old:  "return noun.Limit{At: at}, nil",
		new:  "_, offset := at.Zone()\n\t\treturn noun.Limit{At: at.Add(time.Duration(offset) * time.Second)}, nil",
		by:   catches("dsl", "^TestTimersOverAClockChange$"),
	},
}
