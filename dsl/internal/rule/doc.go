// Package rule translates the conditions of validation blocks to rules. PostgreSQL evaluates a rule
// in the transaction that submits a run.
//
//	in:   the syntax of a condition, and the types of the variables
//	out:  a rule in JSON for the SQL function engine.rule, or nothing
//
// A rule is an array of an operation and its operands:
//
//	["is", VALUE]                       a number, text or bool of the condition
//	["input", "{\"order\",\"total\"}"]  a part of the input; the path is a text array of PostgreSQL
//	["and" | "or", A, B], ["not", A]
//	["eq" | "lt" | "le" | "gt" | "ge", A, B]
//	["null", A], ["length", A], ["trim", A]
//	["starts" | "ends", A, B]
//	["in", [VALUE, …], A]
//	["match", PATTERN, A]               PATTERN is a regular expression of PostgreSQL
//
// Invariant: whenever a rule has a value, the condition has the same value. A rule has no value
// (NULL in SQL) if the values of rule and condition might differ, for example for a text that has
// characters outside of ASCII. The engine evaluates every condition anyway. So if a rule has no
// value, the condition is only checked later.
package rule
