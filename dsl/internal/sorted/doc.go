// Package sorted lists the keys of maps in ascending order.
//
// The packages of the language use this order wherever the order can be seen: in findings, in
// stored bytes and in the cost of an evaluation.
package sorted
