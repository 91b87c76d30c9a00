// Package rung names the reactions of the engine to an attempt whose outcome is unknown. The
// engine tries one reaction after the other, until a reaction succeeds. Workflow.AfterUnknown of
// package dsl returns the reactions that are possible for a step.
package rung
