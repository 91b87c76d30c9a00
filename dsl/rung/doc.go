// Package rung names the reactions of the engine to an attempt whose outcome is unknown. The
// engine tries them one after the other until one helps. Workflow.AfterUnknown of package dsl
// returns the reactions of a step.
package rung
