package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
)

// A book holds all measured figures.
type book struct {
	figures []figure
}

// A figure is a number that was measured in one round, for one row of a table.
type figure struct {
	Row   string  `json:"row"`   // what was measured, such as postgres/256
	Name  string  `json:"name"`  // name of the number, such as steps/s
	Round int     `json:"round"` // index of the round; 0 = the first
	Value float64 `json:"value"`
}

func (b *book) put(round int, row, name string, v float64) {
	b.figures = append(b.figures, figure{Row: row, Name: name, Round: round, Value: v})
}

// values returns one number of one row: the value that was measured in each round. The parameter
// `row` is the name of the row, and the parameter `name` is the name of the number. The keys of the
// map are the indexes of the rounds.
func (b *book) values(row, name string) map[int]float64 {
	out := map[int]float64{}
	for _, f := range b.figures {
		if f.Row == row && f.Name == name {
			out[f.Round] = f.Value
		}
	}
	return out
}

// median returns the median over all rounds of one number that was measured for one row. The
// parameters are the same as in values. The result `ok` is false if the number was not measured.
func (b *book) median(row, name string) (v float64, ok bool) {
	return middle(b.values(row, name))
}

// ratio divides, in each round, a number of one row by a number of another row. The parameters
// `row` and `name` select the first number, and the parameters `to` and `toName` select the
// second number. The method `ratio` returns the median of these quotients. The result `ok` is
// false if no round has both numbers. Both numbers of a round were measured within a few
// minutes. So a machine that becomes slower or faster over time hardly changes the ratio.
func (b *book) ratio(row, to, name, toName string) (v float64, ok bool) {
	of, base := b.values(row, name), b.values(to, toName)
	ratios := map[int]float64{}
	for round, v := range of {
		if u, ok := base[round]; ok && u != 0 {
			ratios[round] = v / u
		}
	}
	return middle(ratios)
}

func middle(values map[int]float64) (float64, bool) {
	var all []float64
	for _, v := range values {
		all = append(all, v)
	}
	if len(all) == 0 {
		return 0, false
	}
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2, true
}

// write writes all figures to a file as JSON, with the time, the machine and the Go version.
func (b *book) write(path string) error {
	data, err := json.MarshalIndent(struct {
		At      time.Time `json:"at"`
		CPUs    int       `json:"cpus"`
		System  string    `json:"system"`
		Go      string    `json:"go"`
		Figures []figure  `json:"figures"`
	}{time.Now().UTC(), runtime.NumCPU(), runtime.GOOS + "/" + runtime.GOARCH, runtime.Version(), b.figures}, "", " ")
	if err == nil {
		err = os.WriteFile(path, append(data, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}
