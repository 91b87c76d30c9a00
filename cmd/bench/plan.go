package main

import "time"

// A plan is how long each measurement takes, and how much it is made of.
type plan struct {
	rounds int           // how often all of a part is measured in turn
	warm   time.Duration // before each measurement, under the same load
	each   time.Duration // each measurement

	scale  int           // of pgbench's table: 100,000 rows each
	minute time.Duration // of the long measurement, which has five of them

	large int // calls of a run that is large in some way

	queued     int           // runs that are submitted and owned by nobody
	queueLimit time.Duration // after which no more are submitted
	claim      time.Duration // how long claiming them is watched

	finished int // runs that have ended, next to which a Supervisor looks for what is due
	scans    int // passes of it
	flight   int // runs in flight that are taken over
	takes    int // takeovers of them

	kept  int           // runs that are held in memory at once, to see what one takes
	colds int           // cold starts
	idle  time.Duration // how long an idle engine is listened to, at least

	limit time.Duration // ends a benchmark that hangs
}

// whole is the plan of make bench.
func whole() plan {
	return plan{
		rounds: 3, warm: 2 * time.Second, each: 10 * time.Second, scale: 10, minute: time.Minute, large: 10_000,
		queued: 1_000_000, queueLimit: 15 * time.Minute, claim: 30 * time.Second,
		finished: 10_000_000, scans: 500, flight: 100_000, takes: 3,
		kept: 20_000, colds: 10, idle: 3 * time.Minute, limit: 2 * time.Hour,
	}
}

// glimpse is the plan of make bench SHORT=1.
func glimpse() plan {
	return plan{
		rounds: 2, warm: time.Second, each: 2 * time.Second, scale: 10, minute: 3 * time.Second, large: 1_000,
		queued: 10_000, queueLimit: 10 * time.Second, claim: 3 * time.Second,
		finished: 300_000, scans: 100, flight: 5_000, takes: 3,
		kept: 1_000, colds: 3, idle: 75 * time.Second, limit: 15 * time.Minute,
	}
}
