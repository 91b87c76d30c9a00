// Package sorted lists the keys of maps in ascending order.
//
// The packages below dsl use this order wherever the order has a visible effect: in findings, in
// stored bytes and in the cost of an evaluation.
package sorted
