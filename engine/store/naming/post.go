package naming

// A Post holds the replies that a transition causes. The store writes them in the same commit as
// the transition, and numbers the replies of each run: 1, 2, 3, … without gaps.
type Post struct {
	Sink        string   // where the replies go, such as table:orders
	Correlation string   // text of the submitter; "" = none
	States      []string // what each reply says, in order
}
