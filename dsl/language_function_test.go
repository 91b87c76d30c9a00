package dsl_test

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

// The tables follow the documentation of Terraform's functions of the same names: its own
// examples first, then the edges. A want that begins with "error: " is a part of a message.

// checkFunctions evaluates each expression while the definition is linked and in a run.
func checkFunctions(t *testing.T, cases [][2]string) {
	t.Helper()
	for _, c := range cases {
		wantEvaluated(t, c[0], c[1])
	}
}

func TestNumberFunctions(t *testing.T) {
	checkFunctions(t, [][2]string{
		{`abs(23)`, "23"}, {`abs(0)`, "0"}, {`abs(-12.4)`, "12.4"}, {`abs("-5")`, "5"}, {`abs("x")`, "error: a number is required"}, {`abs(null)`, "error: must not be null"},
		{`ceil(5)`, "5"}, {`ceil(5.1)`, "6"}, {`ceil(-5.1)`, "-5"}, {`ceil(9007199254740993.5)`, "9007199254740994"}, {`floor(5)`, "5"}, {`floor(4.9)`, "4"}, {`floor(-4.1)`, "-5"},
		{`floor(log(50, 10) * 10000)`, "16989"}, {`log(16, 2)`, "4"}, {`ceil(log(15, 2))`, "4"}, {`log(1, 10)`, "0"}, {`log(0, 10)`, "error: "},
		{`max(12, 54, 3)`, "54"}, {`max([12, 54, 3]...)`, "54"}, {`max(1)`, "1"}, {`max()`, "error: "}, {`max("7", 6)`, "7"}, {`min(12, 54, 3)`, "3"}, {`min([12, 54, 3]...)`, "3"}, {`min(-1, -2.5)`, "-2.5"}, {`min()`, "error: "},
		{`parseint("100", 10)`, "100"}, {`parseint("FF", 16)`, "255"}, {`parseint("-10", 16)`, "-16"}, {`parseint("1011111011101111", 2)`, "48879"}, {`parseint("aA", 62)`, "656"}, {`parseint("12", 2)`, `error: cannot parse`}, {`parseint("1", 1)`, "error: base must be a whole number between 2 and 62"}, {`parseint("", 10)`, "error: cannot parse"},
		{`parseint("99999999999999999999999999", 10)`, "99999999999999999999999999"},
		{`pow(3, 2)`, "9"}, {`pow(4, 0)`, "1"}, {`pow(2, -1)`, "0.5"}, {`pow(2, 0.5) > 1.41 && pow(2, 0.5) < 1.42`, "true"}, {`signum(-13)`, "-1"}, {`signum(0)`, "0"}, {`signum(344)`, "1"},
		{`sum([10, 13, 6, 4.5])`, "33.5"}, {`sum(toset([1, 2, 2]))`, "3"}, {`sum(["1", 2])`, "3"}, {`sum([0.1, 0.2])`, "0.3"}, {`sum([1, null])`, "error: every element must be a number"}, {`sum(["a"])`, "error: every element must be a number"}, {`sum(5)`, "error: a list is required, this is number"}, {`sum({ a = 1 })`, "error: a list is required"},
		{`sum([9007199254740993, 1])`, "9007199254740994"},
	})
}

func TestTextFunctions(t *testing.T) {
	checkFunctions(t, [][2]string{
		{`chomp("hello\n")`, `"hello"`}, {`chomp("hello\r\n")`, `"hello"`}, {`chomp("hello\n\n")`, `"hello"`}, {`chomp("hello")`, `"hello"`}, {`chomp("")`, `""`},
		{`format("Hello, %s!", "Ander")`, `"Hello, Ander!"`}, {`format("There are %d lights", 4)`, `"There are 4 lights"`}, {`format("%05.1f", 3.14159)`, `"003.1"`}, {`format("%x", 255)`, `"ff"`}, {`format("%q", "a\"b")`, `"\"a\\\"b\""`}, {`format("%v %v", 1, true)`, `"1 true"`}, {`format("%#v", { a = [1] })`, `"{\"a\":[1]}"`}, {`format("%%")`, `"%"`}, {`format("%5s|%-5s|", "ab", "cd")`, `"   ab|cd   |"`}, {`format("%[2]s %[1]s", "a", "b")`, `"b a"`},
		{`format("%s")`, "error: not enough arguments"}, {`format("%s", "a", "b")`, "error: too many arguments"}, {`format("%d", "x")`, "error: "}, {`format("%z", 1)`, "error: unsupported format verb"}, {`format("%1000d", 1)`, "error: a width or precision may have at most three digits"}, {`format("%.1000f", 1)`, "error: a width or precision"}, {`format("%999d", 1) != ""`, "true"}, {`format("%*d", 5, 1)`, "error: "},
		{`formatlist("Hello, %s!", ["Valentina", "Ander"])`, `["Hello, Valentina!","Hello, Ander!"]`}, {`formatlist("%s, %s!", "Salutations", ["Valentina", "Ander"])`, `["Salutations, Valentina!","Salutations, Ander!"]`}, {`formatlist("%s", [])`, "[]"}, {`formatlist("%s%s", ["a"], ["b", "c"])`, "error: "}, {`formatlist("%1000s", ["a"])`, "error: a width or precision"},
		{`indent(2, "[\n  foo,\n  bar,\n]\n")`, `"[\n    foo,\n    bar,\n  ]\n  "`}, {`indent(0, "a\nb")`, `"a\nb"`}, {`indent(4, "")`, `""`},
		{`join("-", ["foo", "bar", "baz"])`, `"foo-bar-baz"`}, {`join(", ", ["foo"])`, `"foo"`}, {`join(", ", [])`, `""`}, {`join("", ["a", "b"], ["c"])`, `"abc"`}, {`join(",", [1, true])`, `"1,true"`}, {`join(",", ["a", null])`, "error: "},
		{`lower("HELLO")`, `"hello"`}, {`lower("АЛЛО!")`, `"алло!"`}, {`upper("hello")`, `"HELLO"`}, {`upper("grüße")`, `"GRÜßE"`}, {`upper("")`, `""`}, {`upper(5)`, `"5"`}, {`upper(null)`, "error: must not be null"}, {`title("hello world")`, `"Hello World"`},
		{`regex("[a-z]+", "53453453.345345aaabbbccc23454")`, `"aaabbbccc"`}, {`regex("(\\d\\d\\d\\d)-(\\d\\d)-(\\d\\d)", "2019-02-01")`, `["2019","02","01"]`}, {`regex("^(?:(?P<scheme>[^:/?#]+):)?(?://(?P<authority>[^/?#]*))?", "https://terraform.io/docs/")`, `{"authority":"terraform.io","scheme":"https"}`}, {`regex("[a-z]+", "53453453.34534523454")`, "error: pattern did not match any part of the given string"}, {`regex("[", "a")`, "error: "}, {`can(regex("^a", "ab"))`, "true"},
		{`regexall("[a-z]+", "1234abcd5678efgh9")`, `["abcd","efgh"]`}, {`length(regexall("[a-z]+", "1234abcd5678efgh9"))`, "2"}, {`regexall("[a-z]+", "123456789")`, "[]"}, {`regexall("(a)(b)?", "aab")`, `[["a",null],["a","b"]]`},
		{`replace("1 + 2 + 3", "+", "-")`, `"1 - 2 - 3"`}, {`replace("hello world", "/w.*d/", "everybody")`, `"hello everybody"`}, {`replace("a1b2", "/([a-z])([0-9])/", "$2$1")`, `"1a2b"`}, {`replace("a/b/c", "/", ".")`, `"a.b.c"`}, {`replace("a//b", "//", ".")`, `"a.b"`}, {`replace("abc", "", "-")`, `"-a-b-c-"`}, {`replace("a", "/[/", "b")`, "error: invalid regular expression"}, {`replace("a", "b", "c")`, `"a"`}, {`replace("aXb", "/x/", "-")`, `"aXb"`}, {`replace("aXb", "/(?i)x/", "-")`, `"a-b"`},
		{`split(",", "foo,bar,baz")`, `["foo","bar","baz"]`}, {`split(",", "foo")`, `["foo"]`}, {`split(",", "")`, `[""]`}, {`split("", "abc")`, `["a","b","c"]`}, {`split(", ", "a, b,c")`, `["a","b,c"]`},
		{`startswith("hello world", "hello")`, "true"}, {`startswith("hello world", "world")`, "false"}, {`startswith("", "")`, "true"}, {`startswith("a", "")`, "true"}, {`endswith("hello world", "world")`, "true"}, {`endswith("hello world", "hello")`, "false"}, {`strcontains("hello world", "wor")`, "true"}, {`strcontains("hello world", "wod")`, "false"}, {`strcontains("", "")`, "true"},
		{`strrev("hello")`, `"olleh"`}, {`strrev("a ☃")`, `"☃ a"`}, {`strrev("")`, `""`},
		{`substr("hello world", 1, 4)`, `"ello"`}, {`substr("🤔🤷", 0, 1)`, `"🤔"`}, {`substr("hello world", -5, -1)`, `"world"`}, {`substr("hello world", 6, 10)`, `"world"`}, {`substr("abc", 3, 1)`, `""`}, {`substr("abc", 0, 0)`, `""`}, {`substr("abc", 4, 1)`, `""`},
		{`trim("?!hello?!", "!?")`, `"hello"`}, {`trim("foobar", "far")`, `"oob"`}, {`trim("   hello! world.!  ", "! ")`, `"hello! world."`}, {`trim("abc", "")`, `"abc"`}, {`trimprefix("helloworld", "hello")`, `"world"`}, {`trimprefix("helloworld", "cat")`, `"helloworld"`}, {`trimprefix("--hello", "-")`, `"-hello"`}, {`trimsuffix("helloworld", "world")`, `"hello"`}, {`trimspace("  hello\n\n")`, `"hello"`}, {`trimspace("")`, `""`},
		{`basename("foo/bar/baz.txt")`, `"baz.txt"`}, {`basename("/")`, `"/"`}, {`basename("a\\b")`, `"a\\b"`}, {`dirname("foo/bar/baz.txt")`, `"foo/bar"`}, {`dirname("baz.txt")`, `"."`}, {`dirname("/a")`, `"/"`}, {`dirname("a//b/../c")`, `"a"`},
	})
}

func TestCollectionFunctions(t *testing.T) {
	checkFunctions(t, [][2]string{
		{`alltrue(["true", true])`, "true"}, {`alltrue([true, false])`, "false"}, {`alltrue([])`, "true"}, {`alltrue([true, null])`, "false"}, {`alltrue(["x"])`, "error: "}, {`anytrue(["true"])`, "true"}, {`anytrue([true, false])`, "true"}, {`anytrue([false, null])`, "false"}, {`anytrue([])`, "false"},
		{`chunklist(["a", "b", "c", "d", "e"], 2)`, `[["a","b"],["c","d"],["e"]]`}, {`chunklist(["a", "b"], 1)`, `[["a"],["b"]]`}, {`chunklist([], 2)`, "[]"}, {`chunklist(["a", "b"], 0)`, `[["a","b"]]`}, {`chunklist(["a"], -1)`, "error: "},
		{`coalesce("a", "b")`, `"a"`}, {`coalesce("", "b")`, `"b"`}, {`coalesce(1, 2)`, "1"}, {`coalesce(["", "b"]...)`, `"b"`}, {`coalesce(null, 0)`, "0"}, {`coalesce(null, false)`, "false"}, {`coalesce(1, "hello")`, `"1"`}, {`coalesce(null, null)`, "error: no argument has a value that is neither null nor empty"}, {`coalesce()`, "error: "}, {`coalesce("", null)`, "error: neither null nor empty"}, {`coalesce([], ["a"])`, "[]"}, {`coalesce({ a = 1 }, 1)`, "error: all arguments must have the same type"},
		{`coalescelist(["a", "b"], ["c", "d"])`, `["a","b"]`}, {`coalescelist([], ["c", "d"])`, `["c","d"]`}, {`coalescelist([[], ["c", "d"]]...)`, `["c","d"]`}, {`coalescelist([], [])`, "error: "},
		{`compact(["a", "", "b", null, "c"])`, `["a","b","c"]`}, {`compact([])`, "[]"}, {`concat(["a", ""], ["b", "c"])`, `["a","","b","c"]`}, {`concat([], [1])`, "[1]"}, {`concat([1], ["a"], [[]])`, `[1,"a",[]]`}, {`concat(1)`, "error: "},
		{`contains(["a", "b", "c"], "a")`, "true"}, {`contains(["a", "b", "c"], "d")`, "false"}, {`contains([1, 2], 2)`, "true"}, {`contains([], "a")`, "false"}, {`contains(toset(["a"]), "a")`, "true"}, {`contains("abc", "a")`, "error: "},
		{`distinct(["a", "b", "a", "c", "d", "b"])`, `["a","b","c","d"]`}, {`distinct([1, 1.0, 2])`, "[1,2]"}, {`distinct([{ a = 1 }, { a = 1 }])`, `[{"a":1}]`}, {`distinct([[1], [1], [2]])`, "[[1],[2]]"}, {`distinct([])`, "[]"}, {`distinct(["a", null, null])`, `["a",null]`}, {`distinct("a")`, "error: "},
		{`element(["a", "b", "c"], 1)`, `"b"`}, {`element(["a", "b", "c"], 3)`, `"a"`}, {`element(["a", "b", "c"], length(["a", "b", "c"])-1)`, `"c"`}, {`element(["a", "b", "c"], -1)`, `"c"`}, {`element([], 0)`, "error: cannot use element function with an empty list"}, {`element([1], 1.5)`, "error: "},
		{`flatten([["a", "b"], [], ["c"]])`, `["a","b","c"]`}, {`flatten([[["a", "b"], []], ["c"]])`, `["a","b","c"]`}, {`flatten(["a", ["b"]])`, `["a","b"]`}, {`flatten([])`, "[]"}, {`flatten([{ a = [1] }])`, `[{"a":[1]}]`}, {`flatten("a")`, "error: "},
		{`index(["a", "b", "c"], "b")`, "1"}, {`index(["a", "b", "c"], "d")`, "error: the value is not in the list"}, {`index([{ a = 1 }], { a = 1 })`, "0"}, {`index([1], "1")`, "error: the value is not in the list"}, {`index([], 1)`, "error: the value is not in the list"}, {`index("abc", "a")`, "error: a list is required, this is string"},
		{`keys({ a = 1, c = 2, d = 3 })`, `["a","c","d"]`}, {`keys({})`, "[]"}, {`keys([1])`, "error: "}, {`values({ a = 3, c = 2, d = 1 })`, "[3,2,1]"}, {`values({})`, "[]"},
		{`length([])`, "0"}, {`length(["a", "b"])`, "2"}, {`length({ "a" = "b" })`, "1"}, {`length("hello")`, "5"}, {`length("👾🕹️")`, "2"}, {`length("")`, "0"}, {`length(toset(["a", "a"]))`, "1"}, {`length(5)`, "error: a string, a collection or an object is required"}, {`length(true)`, "error: a string, a collection or an object is required"}, {`length(null)`, "error: must not be null"},
		{`lookup({ a = "ay", b = "bee" }, "a", "what?")`, `"ay"`}, {`lookup({ a = "ay", b = "bee" }, "c", "what?")`, `"what?"`}, {`lookup(tomap({ a = 1 }), "a")`, "1"}, {`lookup(tomap({ a = 1 }), "b", null)`, "null"}, {`lookup({ a = 1 }, "b")`, "error: the key is not in the map, and no default was given"}, {`lookup({ a = null }, "a", 1)`, "null"}, {`lookup([1], "a")`, "error: a map or an object is required"}, {`lookup({}, "a", 1, 2)`, "error: at most three arguments are allowed"},
		{`matchkeys(["i-123", "i-abc", "i-def"], ["us-west", "us-east", "us-east"], ["us-east"])`, `["i-abc","i-def"]`}, {`matchkeys(["a"], ["b"], [])`, "[]"}, {`matchkeys([], [], ["x"])`, "[]"}, {`matchkeys(["a"], [], ["x"])`, "error: values and keys must have the same length"}, {`matchkeys("a", ["b"], ["c"])`, "error: Invalid value for \"values\" parameter: a list is required, this is string"},
		{`merge({ a = "b", c = "d" }, { e = "f", c = "z" })`, `{"a":"b","c":"z","e":"f"}`}, {`merge({ a = "b" }, { a = [1, 2], c = "z" }, { d = 3 })`, `{"a":[1,2],"c":"z","d":3}`}, {`merge()`, "{}"}, {`merge({}, null)`, "{}"}, {`merge([{ a = 1 }, { b = 2 }]...)`, `{"a":1,"b":2}`}, {`merge([1])`, "error: "},
		{`one([])`, "null"}, {`one(["hello"])`, `"hello"`}, {`one(toset([1]))`, "1"}, {`one(["hello", "goodbye"])`, "error: the list must have no element or one"}, {`one("a")`, "error: a list is required"},
		{`range(3)`, "[0,1,2]"}, {`range(1, 4)`, "[1,2,3]"}, {`range(1, 8, 2)`, "[1,3,5,7]"}, {`range(1, 4, 0.5)`, "[1,1.5,2,2.5,3,3.5]"}, {`range(4, 1)`, "[4,3,2]"}, {`range(10, 5, -2)`, "[10,8,6]"}, {`range(0)`, "[]"}, {`length(range(1024))`, "1024"}, {`range(1025)`, "error: more than 1024 values were generated"}, {`range(1, 2, 0)`, "error: "}, {`range(1, 2, -1)`, "error: "},
		{`reverse([1, 2, 3])`, "[3,2,1]"}, {`reverse([])`, "[]"}, {`reverse(["a", 1])`, `[1,"a"]`}, {`reverse("abc")`, "error: "},
		{`setintersection(["a", "b"], ["b", "c"], ["b", "d"])`, `["b"]`}, {`setintersection(["a"], [])`, "[]"}, {`setintersection(["a"])`, `["a"]`}, {`setsubtract(["a", "b", "c"], ["a", "c"])`, `["b"]`}, {`setsubtract([], ["a"])`, "[]"}, {`setsubtract(["a"], [])`, `["a"]`}, {`setunion(["a", "b"], ["b", "c"], ["d"])`, `["a","b","c","d"]`}, {`setunion([1, 2], [2.0, 3])`, "[1,2,3]"}, {`setunion([], [])`, "[]"}, {`setunion([[1], [2]], [[2]])`, "[[1],[2]]"},
		{`setunion(setsubtract(["a", "b"], ["b", "c"]), setsubtract(["b", "c"], ["a", "b"]))`, `["a","c"]`}, {`setunion(["1"], [1])`, `["1"]`},
		{`setproduct(["development", "staging"], ["app1", "app2"])`, `[["development","app1"],["development","app2"],["staging","app1"],["staging","app2"]]`}, {`setproduct(["a"], [])`, "[]"}, {`setproduct(["a"], [1])`, `[["a",1]]`}, {`setproduct(["a"])`, "error: "},
		{`slice(["a", "b", "c", "d"], 1, 3)`, `["b","c"]`}, {`slice(["a"], 0, 0)`, "[]"}, {`slice(["a"], 0, 2)`, "error: end index must not be greater than the length of the list"}, {`slice(["a"], 1, 0)`, "error: start index must not be greater than end index"}, {`slice(["a"], -1, 1)`, "error: start index must not be less than zero"},
		{`sort(["e", "d", "a", "x"])`, `["a","d","e","x"]`}, {`sort(["b", "B", "a", "1"])`, `["1","B","a","b"]`}, {`sort([10, 9, 1])`, `["1","10","9"]`}, {`sort([])`, "[]"}, {`sort(["a", null])`, "error: "},
		{`transpose({ "a" = ["1", "2"], "b" = ["2", "3"] })`, `{"1":["a"],"2":["a","b"],"3":["b"]}`}, {`transpose({})`, "{}"}, {`transpose({ a = [] })`, "{}"}, {`transpose({ a = [null] })`, "error: an element must not be null"}, {`transpose({ a = null })`, "error: a list must not be null"},
		{`zipmap(["a", "b"], [1, 2])`, `{"a":1,"b":2}`}, {`zipmap([], [])`, "{}"}, {`zipmap(["a", "a"], [1, 2])`, `{"a":2}`}, {`zipmap(["a"], [])`, "error: "}, {`zipmap(["a", "b"], [1, "x"])`, `{"a":1,"b":"x"}`},
	})
}

func TestEncodingFunctions(t *testing.T) {
	checkFunctions(t, [][2]string{
		{`base64encode("Hello World")`, `"SGVsbG8gV29ybGQ="`}, {`base64encode("")`, `""`}, {`base64encode("ü")`, `"w7w="`}, {`base64decode("SGVsbG8gV29ybGQ=")`, `"Hello World"`}, {`base64decode("")`, `""`}, {`base64decode("SGVsbG8")`, "error: the text is not valid base64"}, {`base64decode("_-8=")`, "error: the text is not valid base64"}, {`base64decode("/w==")`, "error: the decoded bytes are not valid UTF-8 text"},
		{`csvdecode("a,b,c\n1,2,3\n4,5,6")`, `[{"a":"1","b":"2","c":"3"},{"a":"4","b":"5","c":"6"}]`}, {`csvdecode("a")`, "[]"}, {`csvdecode("a,\"b c\"\n\"x,y\",\"\"\"q\"\"\"")`, `[{"a":"x,y","b c":"\"q\""}]`}, {`csvdecode("a,b\n1")`, "error: "}, {`csvdecode("a,a\n1,2")`, "error: "}, {`csvdecode("")`, "error: "},
		{`jsondecode("{\"hello\": \"world\"}")`, `{"hello":"world"}`}, {`jsondecode("true")`, "true"}, {`jsondecode("null")`, "null"}, {`jsondecode("[1, 2.50, 9007199254740993]")`, "[1,2.5,9007199254740993]"}, {`jsondecode("\"\\u00fc\"")`, `"ü"`}, {`jsondecode("{")`, "error: the text is not valid JSON"}, {`jsondecode("1 2")`, "error: the text is more than one JSON value"}, {`jsondecode("")`, "error: the text is not valid JSON"}, {`jsondecode("{\"b\":1,\"a\":2}")`, `{"a":2,"b":1}`},
		{`jsonencode({ "hello" = "world" })`, `"{\"hello\":\"world\"}"`}, {`jsonencode("<&>")`, `"\"<&>\""`}, {`jsonencode(null)`, `"null"`}, {`jsonencode([1, true, "a", 2.50])`, `"[1,true,\"a\",2.5]"`}, {`jsonencode({ b = 1, a = { d = [], c = {} } })`, `"{\"a\":{\"c\":{},\"d\":[]},\"b\":1}"`}, {`jsonencode(toset(["b", "a"]))`, `"[\"a\",\"b\"]"`}, {`jsondecode(jsonencode({ a = "x\n\"y\"", n = 0.1 }))`, `{"a":"x\n\"y\"","n":0.1}`},
		{`urlencode("Hello World!")`, `"Hello+World%21"`}, {`urlencode("☃")`, `"%E2%98%83"`}, {`urlencode("a/b?c=d&e")`, `"a%2Fb%3Fc%3Dd%26e"`}, {`urlencode("")`, `""`},
		{`yamldecode("hello: world")`, `{"hello":"world"}`}, {`yamldecode("true")`, "true"}, {`yamldecode("{a: &foo [1, 2, 3], b: *foo}")`, `{"a":[1,2,3],"b":[1,2,3]}`}, {`yamldecode("{a: &foo [1, *foo, 3]}")`, "error: "}, {`yamldecode("- 1\n- two\n- ~\n- 1.5")`, `[1,"two",null,1.5]`}, {`yamldecode("a: [")`, "error: "}, {`yamldecode("{a: !not-supported foo}")`, "error: unsupported tag"}, {`yamldecode("a: b: c")`, "error: "},
		{`yamlencode({ "a" = "b", "c" = "d" })`, `"\"a\": \"b\"\n\"c\": \"d\"\n"`}, {`yamlencode({ "foo" = [1, { "a" = "b" }, 3], "bar" = "baz" })`, `"\"bar\": \"baz\"\n\"foo\":\n- 1\n- \"a\": \"b\"\n- 3\n"`}, {`yamldecode(yamlencode({ a = [1, "x", true] }))`, `{"a":[1,"x",true]}`},
		{`md5("hello world")`, `"5eb63bbbe01eeed093cb22bb8f5acdc3"`}, {`sha1("hello world")`, `"2aae6c35c94fcfb415dbe95f408b9ce91ee846ed"`}, {`sha256("hello world")`, `"b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"`},
		{`sha512("hello world")`, `"309ecc489c12d6eb4cc40f50c902f2b4d0ed77ee511a7c7a9bcd3ca86d4cd86f989dd35bc5ff499670da34255b45b0cfd830e81f605dcf7dc5542e93ae9cd76f"`},
		{`base64sha256("hello world")`, `"uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek="`}, {`base64sha512("hello world")`, `"MJ7MSJwS1utMxA9QyQLytNDtd+5RGnx6m808qG1M2G+YndNbxf9JlnDaNCVbRbDP2DDoH2Bdz33FVC6TrpzXbw=="`},
		{`uuidv5("dns", "www.terraform.io")`, `"a5008fae-b28c-5ba5-96cd-82b4c53552d6"`}, {`uuidv5("url", "https://www.terraform.io/")`, `"9db6f67c-dd95-5ea0-aa5b-e70e5c5f7cf5"`}, {`uuidv5("oid", "1.3.6.1.4")`, `"af9d40a5-7a36-5c07-b23a-851cd99fbfa5"`}, {`uuidv5("x500", "CN=Example,C=GB")`, `"84e09961-4aa4-57f8-95b7-03edb1073253"`}, {`uuidv5("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.terraform.io")`, `"a5008fae-b28c-5ba5-96cd-82b4c53552d6"`}, {`uuidv5("nope", "x")`, `error: namespace is a UUID, "dns", "url", "oid" or "x500"`},
	})
}

func TestTimeAndNetworkFunctions(t *testing.T) {
	checkFunctions(t, [][2]string{
		{`formatdate("DD MMM YYYY hh:mm ZZZ", "2018-01-02T23:12:01Z")`, `"02 Jan 2018 23:12 UTC"`}, {`formatdate("EEEE, DD-MMM-YY hh:mm:ss ZZZ", "2018-01-02T23:12:01Z")`, `"Tuesday, 02-Jan-18 23:12:01 UTC"`}, {`formatdate("EEE, DD MMM YYYY hh:mm:ss ZZZ", "2018-01-02T23:12:01-08:00")`, `"Tue, 02 Jan 2018 23:12:01 -0800"`}, {`formatdate("h'h'mm", "2018-01-02T03:12:01Z")`, `"3h12"`}, {`formatdate("YYYY", "2018-01-02")`, "error: not a valid RFC3339 timestamp"}, {`formatdate("bananas", "2018-01-02T23:12:01Z")`, "error: "},
		{`timeadd("2017-11-22T00:00:00Z", "10m")`, `"2017-11-22T00:10:00Z"`}, {`timeadd("2017-11-22T00:00:00Z", "-24h")`, `"2017-11-21T00:00:00Z"`}, {`timeadd("2017-11-22T00:00:00Z", "1h30m5.5s") != ""`, "true"}, {`timeadd("yesterday", "10m")`, "error: "}, {`timeadd("2017-11-22T00:00:00Z", "later")`, "error: "},
		{`timecmp("2017-11-22T00:00:00Z", "2017-11-22T00:00:00Z")`, "0"}, {`timecmp("2017-11-22T00:00:00Z", "2017-11-22T01:00:00Z")`, "-1"}, {`timecmp("2017-11-22T01:00:00Z", "2017-11-22T00:59:00Z")`, "1"}, {`timecmp("2017-11-22T01:00:00Z", "2017-11-22T00:00:00-01:00")`, "0"}, {`timecmp("x", "2017-11-22T00:00:00Z")`, "error: Invalid value for \"a\" parameter: a point in time as in RFC 3339 is required"}, {`timecmp("2017-11-22T00:00:00Z", "")`, "error: Invalid value for \"b\" parameter: a point in time"},
		{`cidrhost("10.12.112.0/20", 16)`, `"10.12.112.16"`}, {`cidrhost("10.12.112.0/20", 268)`, `"10.12.113.12"`}, {`cidrhost("fd00:fd12:3456:7890:00a2::/72", 34)`, `"fd00:fd12:3456:7890::22"`}, {`cidrhost("10.0.0.0/8", -1)`, `"10.255.255.255"`}, {`cidrhost("10.0.0.0/30", 4)`, "error: "}, {`cidrhost("10.0.0.0/8", 1.5)`, "error: hostnum is a whole number"}, {`cidrhost("10.0.0.0", 1)`, `error: prefix is an address range such as "10.0.0.0/16"`},
		{`cidrnetmask("172.16.0.0/12")`, `"255.240.0.0"`}, {`cidrnetmask("10.0.0.0/32")`, `"255.255.255.255"`}, {`cidrnetmask("fd00::/8")`, "error: IPv6 ranges have no netmask"}, {`cidrnetmask("x")`, "error: prefix is an address range"},
		{`cidrsubnet("172.16.0.0/12", 4, 2)`, `"172.18.0.0/16"`}, {`cidrsubnet("10.1.2.0/24", 4, 15)`, `"10.1.2.240/28"`}, {`cidrsubnet("fd00:fd12:3456:7890::/56", 16, 162)`, `"fd00:fd12:3456:7800:a200::/72"`}, {`cidrsubnet("10.0.0.0/8", 0, 0)`, `"10.0.0.0/8"`}, {`cidrsubnet("10.0.0.0/24", 2, 4)`, "error: "}, {`cidrsubnet("10.0.0.0/24", 9, 0)`, "error: "}, {`cidrsubnet("10.0.0.0/24", -1, 0)`, "error: a whole number from 0 to 128 is required"}, {`cidrsubnet("10.0.0.0/24", 129, 0)`, "error: a whole number from 0 to 128 is required"}, {`cidrsubnet("10.0.0.0/24", 1, 0.5)`, "error: netnum is a whole number"},
		{`cidrsubnets("10.1.0.0/16", 4, 4, 8, 4)`, `["10.1.0.0/20","10.1.16.0/20","10.1.32.0/24","10.1.48.0/20"]`}, {`cidrsubnets("fd00:fd12:3456:7890::/56", 16, 16, 16, 32)`, `["fd00:fd12:3456:7800::/72","fd00:fd12:3456:7800:100::/72","fd00:fd12:3456:7800:200::/72","fd00:fd12:3456:7800:300::/88"]`}, {`cidrsubnets("10.0.0.0/16")`, "[]"}, {`cidrsubnets("10.0.0.0/31", 1, 1)`, `["10.0.0.0/32","10.0.0.1/32"]`}, {`cidrsubnets("10.0.0.0/31", 1, 1, 1)`, "error: the range is too small for these subnets"}, {`cidrsubnets("10.0.0.0/16", 0)`, "error: a whole number from 1 to 128 is required"}, {`cidrsubnets("255.255.255.254/31", 1, 1, 1)`, "error: the range is too small for these subnets"},
	})
}

func TestTypeFunctions(t *testing.T) {
	checkFunctions(t, [][2]string{
		{`can({ a = 1 }.a)`, "true"}, {`can({ a = 1 }["b"])`, "false"}, {`try({ a = 1 }["b"], "fallback")`, `"fallback"`}, {`try([1][5], [2][5], 3)`, "3"}, {`try([1][5])`, "error: "}, {`try(1, [1][5])`, "1"}, {`can(parseint("x", 10)) ? 1 : 2`, "2"}, {`try()`, "error: "},
		{`tobool(true)`, "true"}, {`tobool("true")`, "true"}, {`tobool("no")`, "error: cannot convert"}, {`tobool(1)`, "error: cannot convert"}, {`tobool(null)`, "null"}, {`tonumber(1)`, "1"}, {`tonumber("1")`, "1"}, {`tonumber("0x1")`, "error: cannot convert"}, {`tonumber("no")`, "error: cannot convert"}, {`tonumber(null)`, "null"}, {`tostring("hello")`, `"hello"`}, {`tostring(1.50)`, `"1.5"`}, {`tostring(true)`, `"true"`}, {`tostring(null)`, "null"}, {`tostring([])`, "error: cannot convert"},
		{`tolist(["a", "b", "c"])`, `["a","b","c"]`}, {`tolist(["a", "b", 3])`, `["a","b","3"]`}, {`tolist(toset(["b", "a"]))`, `["a","b"]`}, {`tolist("a")`, "error: cannot convert"}, {`toset(["c", "b", "b"])`, `["b","c"]`}, {`toset(["a", "b", 3])`, `["3","a","b"]`}, {`tomap({ "a" = 1, "b" = 2 })`, `{"a":1,"b":2}`}, {`tomap({ "a" = "foo", "b" = true })`, `{"a":"foo","b":"true"}`}, {`tomap([1])`, "error: cannot convert"},
		{`issensitive("a")`, "false"}, {`nonsensitive("a")`, `"a"`}, {`nonsensitive(sensitive([1]))`, "[1]"},
	})
}

// TestFunctionsThatAreMissing: there is no function that gives another value each time,
// and the message says what to use instead.
func TestFunctionsThatAreMissing(t *testing.T) {
	for name, want := range map[string]string{
		"timestamp": `There is no function named "timestamp". Use run.started_at.`, "plantimestamp": "Use run.started_at.", "uuid": "Use run.id, or uuidv5(namespace, name).", "bcrypt": "It is random; hash in an agent.",
		"now": "no function reads the clock", "random": "Use run.id, or uuidv5(namespace, name).", "rsadecrypt": "Decrypt in an agent", "sprintf": "Use format().", "toJSON": "Use jsonencode().",
		"uper": `Did you mean "upper"?`, "lengthh": `Did you mean "length"?`, "contain": `Did you mean "contains"?`, "nothinglikeit": `There is no function named "nothinglikeit".`, "FILE": `There is no function named "FILE".`,
		"filee": `Did you mean "file"?`, "secrets": `Did you mean "secret"?`,
	} {
		_, diags := check(files{"main.hcl": workflow("output \"o\" { value = " + name + "(\"x\") }\n" + step("s", ""))})
		wantFindings(t, diags, fails("Call to unknown function", name, want))
	}
}

// TestFunctionsWithArgumentsOfRuns: the same function gives the same with values that only
// a run knows, whatever their type was before.
func TestFunctionsWithArgumentsOfRuns(t *testing.T) {
	for _, tt := range []struct{ expr, v, want string }{
		{"upper(var.v)", `"a"`, `"A"`}, {"upper(var.v)", "5", `"5"`}, {"upper(var.v)", "null", "error: must not be null"}, {"upper(var.v)", "[]", "error: string required"},
		{"length(var.v)", `"äöü"`, "3"}, {"length(var.v)", "[1,2]", "2"}, {"length(var.v)", `{"a":1}`, "1"}, {"length(var.v)", "5", "error: a string, a collection or an object is required"},
		{"sum(var.v)", "[1,2.5]", "3.5"}, {"sum(var.v)", "[]", "0"}, {"distinct(var.v)", `["a","a",1]`, `["a","1"]`}, {"flatten(var.v)", `[[1],["a",[2]]]`, `[1,"a",2]`}, {"merge(var.v, { z = 1 })", `{"a":[1]}`, `{"a":[1],"z":1}`}, {"keys(var.v)", `{"b":1,"a":"x"}`, `["a","b"]`}, {"values(var.v)", `{"b":1,"a":"x"}`, `["x",1]`},
		{"join(\",\", var.v)", `["a",1,true]`, `"a,1,true"`}, {"sort(var.v)", `["b","a"]`, `["a","b"]`}, {"toset(var.v)", `["b","a","b"]`, `["a","b"]`}, {"contains(var.v, 2)", "[1,2]", "true"}, {"contains(var.v, \"2\")", "[1,2]", "false"}, {"lookup(var.v, \"a\", 0)", `{"a":7}`, "7"}, {"element(var.v, 3)", "[1,2]", "2"}, {"slice(var.v, 1, 2)", "[1,2,3]", "[2]"},
		{"var.v[0]", "[7]", "7"}, {"var.v[1]", "[7]", "error: Invalid index"}, {"var.v.a.b", `{"a":{"b":7}}`, "7"}, {"var.v[\"a\"]", `{"a":7}`, "7"}, {"var.v.c", `{"a":7}`, "error: Unsupported attribute"}, {"var.v[*].a", `[{"a":1},{"a":2}]`, "[1,2]"}, {"var.v[*]", "null", "[]"}, {"var.v[*]", "5", "[5]"}, {"[for k, x in var.v : \"${k}=${x}\"]", `{"a":1,"b":true}`, `["a=1","b=true"]`}, {"{ for i, x in var.v : x => i }", `["a","b"]`, `{"a":0,"b":1}`},
		{"{ for x in var.v : x => 1 }", `["a","a"]`, "error: Duplicate object key"}, {"{ for x in var.v : x => 1... }", `["a","a"]`, `{"a":[1,1]}`}, {"[for x in var.v : x if x > 1]", "[1,2,3]", "[2,3]"}, {"var.v ? 1 : 2", `"true"`, "1"}, {"var.v ? 1 : 2", `"x"`, "error: Incorrect condition type"}, {"var.v == 5", "5", "true"}, {"var.v == 5", `"5"`, "false"}, {"!var.v", "true", "false"}, {"-var.v", "5", "-5"}, {"var.v + 1", `"4"`, "5"}, {"var.v + 1", `"x"`, "error: a number is required"}, {"1 / var.v", "0", "error: a number must be finite"}, {"1 / var.v", "8", "0.125"},
		{"\"%{ for x in var.v }${x};%{ endfor }\"", "[1,2]", `"1;2;"`}, {"\"%{ if var.v }yes%{ else }no%{ endif }\"", "false", `"no"`}, {"\"$${var.v} %%{x}\"", "1", `"${var.v} %{x}"`}, {"\"${var.v}\"", "5", "5"}, {"\"${var.v}\"", "[1]", "[1]"}, {"\"${var.v} \"", "5", `"5 "`}, {"\"x${var.v}\"", "[1]", "error: Invalid template interpolation value"}, {"\"x${var.v}\"", "null", "error: Cannot include a null value in a string template"},
		{"jsondecode(var.v)", `"{\"a\":[1]}"`, `{"a":[1]}`}, {"jsonencode(var.v)", `{"b":null,"a":"é"}`, `"{\"a\":\"é\",\"b\":null}"`}, {"yamldecode(var.v)", `"a: 1"`, `{"a":1}`}, {"try(var.v.a.b, \"none\")", "{}", `"none"`}, {"can(var.v.a)", `{"a":null}`, "true"}, {"coalesce(var.v, \"x\")", "null", `"x"`}, {"coalesce(var.v, \"x\")", `""`, `"x"`}, {"coalesce(var.v, \"x\")", "5", `"5"`},
		{"setunion(var.v, [3])", "[1,2]", "[1,2,3]"}, {"setproduct(var.v, [\"x\"])", `["a"]`, `[["a","x"]]`}, {"zipmap(var.v, [1])", `["a"]`, `{"a":1}`}, {"transpose(var.v)", `{"a":["x"]}`, `{"x":["a"]}`}, {"max(var.v...)", "[3,7]", "7"}, {"format(\"%s-%d\", var.v...)", `["a",1]`, `"a-1"`}, {"formatlist(\"%s!\", var.v)", `["a"]`, `["a!"]`}, {"cidrsubnets(\"10.0.0.0/8\", var.v...)", "[8,8]", `["10.0.0.0/16","10.1.0.0/16"]`},
		{"tolist(var.v)", `["a",1]`, `["a","1"]`}, {"tomap(var.v)", `{"a":1}`, `{"a":1}`}, {"one(var.v)", "[7]", "7"}, {"range(var.v)", "3", "[0,1,2]"}, {"index(var.v, { a = 1 })", `[{"a":1}]`, "0"}, {"matchkeys(var.v, [\"k\"], [\"k\"])", "[7]", "[7]"}, {"alltrue(var.v)", "[true,true]", "true"}, {"anytrue(var.v)", "[false,true]", "true"}, {"concat(var.v, [1])", `["a"]`, `["a",1]`}, {"reverse(var.v)", "[1,2]", "[2,1]"}, {"chunklist(var.v, 1)", "[1,2]", "[[1],[2]]"}, {"compact(var.v)", `["","a",null]`, `["a"]`}, {"coalescelist(var.v, [1])", "[]", "[1]"},
	} {
		v, err := evaluatedInRun(t, "variable \"v\" {\n type = any\n default = null\n}\noutput \"o\" { value = "+tt.expr+" }\n"+step("s", ""), "v", tt.v)
		if part, fails := strings.CutPrefix(tt.want, "error: "); fails {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s with %s = %s, %v; want the error %q", tt.expr, tt.v, v.JSON(), err, part)
			}
			continue
		}
		if err != nil || string(v.JSON()) != tt.want {
			t.Errorf("%s with %s = %s, %v; want %s", tt.expr, tt.v, v.JSON(), err, tt.want)
		}
	}
}

// TestExpressionsThatAreTooExpensive: an expression that would take too much time or memory
// is an error that try and can do not catch. The limit counts sizes, not time.
func TestExpressionsThatAreTooExpensive(t *testing.T) {
	const loop = "length([for a in range(var.n) : [for b in range(var.n) : a]])"
	for _, expr := range []string{loop, "try(" + loop + ", 1)", "can(" + loop + ")"} {
		wf := linkedWorkflow(t, "variable \"n\" { default = 1000 }\noutput \"o\" { value = "+expr+" }\n"+step("s", ""))
		_, err := wf.Outputs[0].Value(scopeOf(bound(t, wf)))
		wantError(t, err, "Expression too expensive")
	}
	const large = "length([for a in range(1000) : [for b in range(1000) : \"a ${a} ${b}\"]])"
	_, diags := check(files{"main.hcl": workflow("output \"o\" { value = " + large + " }\n" + step("s", ""))})
	wantFindings(t, diags, fails("Expression too expensive", large, "it may use"))
	wf := linkedWorkflow(t, "variable \"n\" { default = 1 }\noutput \"o\" { value = length([for a in range(100) : [for b in range(100) : var.n]]) }\n"+step("s", ""))
	cost := func(a *dsl.Allowance) (int64, error) {
		scope := scopeOf(bound(t, wf))
		scope.Allowance = a
		_, err := wf.Outputs[0].Value(scope)
		return a.Spent(), err
	}
	first, err := cost(dsl.NewAllowance(1 << 40))
	if err != nil || first <= 0 {
		t.Fatalf("cost %d, %v", first, err)
	}
	if again, err := cost(dsl.NewAllowance(1 << 40)); err != nil || again != first {
		t.Errorf("the second time it costs %d, %v; the first time %d", again, err, first)
	}
	enough, short := dsl.NewAllowance(first), dsl.NewAllowance(first-1)
	if _, err := cost(enough); err != nil || enough.Over() {
		t.Errorf("an allowance of the cost: %v, over %t", err, enough.Over())
	}
	if _, err := cost(short); err == nil || !short.Over() || !strings.Contains(err.Error(), "Expression too expensive") {
		t.Errorf("an allowance of one less: %v, over %t", err, short.Over())
	}
	if _, err := cost(enough); err == nil || !enough.Over() {
		t.Errorf("an allowance that is used up: %v, over %t", err, enough.Over())
	}
}

// TestSizeOfLocalValues: a local value holds at most 4 MiB.
func TestSizeOfLocalValues(t *testing.T) {
	wf := linkedWorkflow(t, "variable \"v\" { default = \"\" }\nlocals { l = [var.v, var.v, var.v] }\noutput \"o\" { value = length(local.l) }\n"+step("s", ""))
	value := func(bytes int) error {
		_, err := wf.Outputs[0].Value(scopeOf(document(`{"v":"` + strings.Repeat("x", bytes) + `"}`)))
		return err
	}
	if err := value(1 << 20); err != nil {
		t.Errorf("3 MiB: %v", err)
	}
	wantError(t, value(1<<20+1<<19), "local.l: a local value may hold at most 4 MiB")
}
