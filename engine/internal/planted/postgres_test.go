package planted

var postgresFaults = []fault{
	{
		name: "declaring an engine dead waits for its batch in flight",
		in:   "engine/postgres.commitOwn",
		old:  "FOR NO KEY UPDATE", new: "",
		by: catches("engine/postgres", "^TestStore$/^fence$"),
	},
	{
		name: "declaring an engine dead waits for its lone transition in flight",
		in:   "engine/postgres.singleInto",
		old:  "FOR NO KEY UPDATE", new: "",
		by: catches("engine/postgres", "^TestStore$/^fence$"),
	},
}
