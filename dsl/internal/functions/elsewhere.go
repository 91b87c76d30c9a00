package functions

const (
	noClock  = "Use run.started_at. For a time before or after it use timeadd(). An expression gives the same value each time, so no function reads the clock."
	noRandom = "Use run.id, or uuidv5(namespace, name). An expression gives the same value each time, so no function is random."
)

// Elsewhere has the names of functions that Terraform or other languages have, and this language
// does not. The value of a name is a text that says what to use instead. Each evaluation of an
// expression must give the same value, so this language has no function that reads a clock, a
// random number or the machine.
var Elsewhere = map[string]string{
	"timestamp": noClock, "plantimestamp": noClock, "now": noClock, "today": noClock, "time": noClock, "date": noClock, "utcnow": noClock,
	"uuid": noRandom, "uuidv4": noRandom, "uuidv7": noRandom, "uuid4": noRandom, "ulid": noRandom, "rand": noRandom, "random": noRandom, "randint": noRandom, "random_uuid": noRandom,
	"bcrypt":          "It is random; hash in an agent.",
	"rsadecrypt":      "Decrypt in an agent, with the key as a secret() in its input.",
	"abspath":         "Paths are relative to the directory of the module, so that every engine reads the same file.",
	"pathexpand":      "Paths are relative to the directory of the module, so that every engine reads the same file.",
	"ephemeralasnull": "Write secret() in the input of a step: the engine never stores a secret.",
	"base64gunzip":    "Decompress in an agent.",
	"list":            "Write [a, b], or tolist() to convert a value.",
	"map":             "Write { name = value }, or tomap() to convert a value.",
	"getenv":          "Use env(\"NAME\"), which is read once, when the definition is loaded.",
	"len":             "Use length().",
	"sprintf":         "Use format().",
	"printf":          "Use format().",
	"fromjson":        "Use jsondecode().",
	"tojson":          "Use jsonencode().",
	"fromJSON":        "Use jsondecode().",
	"toJSON":          "Use jsonencode().",
	"default":         "Use coalesce(value, default).",
	"hashFiles":       "Use filesha256(\"PATH\").",
	"success":         "A step runs when the steps before it have succeeded. For a condition write when = step.NAME.status == \"succeeded\".",
	"failure":         "A step runs when the steps before it have succeeded. A catch block accepts a failure; the status is then step.NAME.status == \"caught\".",
	"always":          "A step runs when the steps before it have succeeded. A catch block in the step before accepts its failure.",
}
