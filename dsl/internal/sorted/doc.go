// Package sorted lists the keys of maps in ascending order.
//
// The language walks maps in this order wherever the order can be seen: in findings, in stored
// bytes and in the cost of an evaluation.
package sorted
