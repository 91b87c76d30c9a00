// Package language describes the workflow language for programs, such as editors.
//
//	in:   the tables with which package dsl reads files
//	out:  blocks, references and functions as plain values, which encode to JSON
//
// The description contains exactly what dsl.Parse accepts. The tests check this in both directions.
package language
