// Package rung names what may follow an attempt whose outcome is unknown, in the order in which
// it is tried. Workflow.AfterUnknown of package dsl says which of them a step has.
package rung
