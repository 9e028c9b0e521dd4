package cli

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/internal/chart"
)

// Conditions are those of a measurement.
type Conditions struct {
	Date    string     // on which it began, in UTC
	Machine string     // system, Go and processors
	Load    [2]float64 // the load average of the last minute before it and after it; 0: unknown
	Took    string     // how long it took
}

// Measure begins a measurement, and returns what to call at its end.
func Measure() (end func() Conditions) {
	began, load := time.Now(), loadAverage()
	return func() Conditions { return conditionsOf(began, load) }
}

// conditionsOf returns the conditions of what began at a time, with a load, and has just ended.
func conditionsOf(began time.Time, load float64) Conditions {
	return Conditions{
		Date:    began.UTC().Format(time.DateOnly),
		Machine: fmt.Sprintf("%s/%s, %s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.NumCPU()),
		Load:    [2]float64{load, loadAverage()},
		Took:    time.Since(began).Round(time.Second).String(),
	}
}

func (c Conditions) String() string {
	return fmt.Sprintf("%s, %s, load average %s before and %s after; took %s", c.Date, c.Machine, LoadText(c.Load[0]), LoadText(c.Load[1]), c.Took)
}

// LoadText returns a load average as text.
func LoadText(load float64) string {
	if load == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.2f", load)
}

// loadAverage is the load average of the last minute, 0 if it is unknown.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, failed := strconv.ParseFloat(first, 64)
	if err != nil || failed != nil {
		return 0
	}
	return load
}

// Plural returns "1 noun" or "n nouns".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return chart.Number(float64(n)) + " " + noun + "s"
}
