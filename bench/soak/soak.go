package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/child"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/table"

	"github.com/redial-go/redial/reconnect"
)

// Command is "bench soak".
func Command() cli.Command {
	return cli.Command{Name: "soak", Summary: "let connections live for long with a server that misbehaves, and look whether anything grows", Example: "-clients 200 -time 1m -every 2s", New: cli.New[soak]}
}

// sample is what this process holds at a time.
type sample struct {
	after       time.Duration
	heap        float64 // MB, after a garbage collection
	goroutines  float64
	descriptors float64
	ready       float64
}

// resources are the figures of a sample.
var resources = []struct {
	name, unit string
	of         func(s sample) float64
	flat       float64 // the growth that is allowed, as a share; 0: any
}{
	{"memory", ", MB after a collection", func(s sample) float64 { return s.heap }, 0.1},
	{"goroutines", "", func(s sample) float64 { return s.goroutines }, 0.1},
	{"descriptors", "", func(s sample) float64 { return s.descriptors }, 0.1},
	{"ready connections", "", func(s sample) float64 { return s.ready }, 0},
}

// soak is the command.
type soak struct {
	clients     int
	time, every time.Duration
	seed        uint64

	n          counts
	before     sample // before the first connection
	samples    []sample
	after      sample // after the last
	server     report
	conditions cli.Conditions
}

func (o *soak) Flags(f *cli.Flags) {
	o.time, o.every = time.Hour, 10*time.Second
	f.IntVar(&o.clients, "clients", 1000, "connections")
	f.Pause(&o.time, "time", "how long they live")
	f.Pause(&o.every, "every", "between two samples")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the faults")
	f.Check(func() error {
		if o.clients < 1 {
			return fmt.Errorf("want at least one of -clients, not %d", o.clients)
		}
		return nil
	})
}

// Run runs. An error says what has grown, or what must not happen and did.
func (o *soak) Run(ctx context.Context, c *cli.Console) error {
	end := cli.Measure()
	defer func() { o.conditions = end() }()
	o.before = take(0, nil)
	reports := make(chan report, 1)
	server, err := child.Start(func(r report) {
		select {
		case <-reports: // only the newest counts
		default:
		}
		reports <- r
	}, childArgument, setup{Seed: o.seed, Life: time.Minute, Up: 2 * time.Minute, Away: 3 * time.Second})
	if err != nil {
		return err
	}
	defer server.Kill()
	select {
	case o.server = <-reports:
	case <-server.Gone():
		return fmt.Errorf("the server has ended: %s", server.LastWords())
	}
	err = o.soak(ctx, c)
	select {
	case o.server = <-reports:
	case <-server.Gone():
		return errors.Join(err, fmt.Errorf("the server has ended: %s", server.LastWords()))
	case <-time.After(10 * time.Second):
	}
	server.Kill()
	o.after = settled(o.before)
	return errors.Join(err, o.judge())
}

// soak opens the connections, takes samples, and closes the connections.
func (o *soak) soak(ctx context.Context, c *cli.Console) (err error) {
	p := cli.NewProgress(c, "soak", int(o.time/o.every))
	defer p.End()
	lives, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	var clients []*client
	for i := range o.clients {
		k, err := newClient(o.server.Address, i, &o.n)
		if err != nil {
			return err
		}
		clients = append(clients, k)
		work.Go(func() { k.live(lives, rand.New(rand.NewPCG(o.seed, uint64(i)))) })
	}
	for began := time.Now(); time.Since(began) < o.time; p.Add(1) {
		if !sleep(ctx, o.every) {
			return context.Cause(ctx)
		}
		o.samples = append(o.samples, take(time.Since(began), clients))
	}
	return nil
}

// take takes a sample.
func take(after time.Duration, clients []*client) sample {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := sample{after: after, heap: float64(m.HeapAlloc+m.StackInuse) / 1e6, goroutines: float64(runtime.NumGoroutine())}
	for _, c := range clients {
		if c.conn.State() == reconnect.StateReady {
			s.ready++
		}
	}
	files, _ := os.ReadDir("/proc/self/fd") // only Linux has it
	s.descriptors = float64(len(files))
	return s
}

// settled is a sample when all is over. It waits for what ends by itself, such as sockets.
func settled(before sample) sample {
	for range 100 {
		if s := take(0, nil); s.goroutines <= before.goroutines && s.descriptors <= before.descriptors {
			return s
		}
		time.Sleep(100 * time.Millisecond)
	}
	return take(0, nil)
}

// long is how long a soak must be, for its growth to be judged: in a shorter one everything is still at
// its beginning.
const long = 10 * time.Minute

// growth returns by which share a figure has grown from the second quarter of the samples to the last:
// the first is the beginning, at which everything grows.
func (o *soak) growth(of func(sample) float64) float64 {
	quarter := len(o.samples) / 4
	if quarter == 0 {
		return 0
	}
	return median(o.samples[len(o.samples)-quarter:], of)/median(o.samples[quarter:2*quarter], of) - 1
}

func median(samples []sample, of func(sample) float64) float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, of(s))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// judge returns an error if something has grown, is left, or must not have happened.
func (o *soak) judge() error {
	var wrong []string
	for _, r := range resources {
		if g := o.growth(r.of); o.time >= long && r.flat > 0 && g > r.flat {
			wrong = append(wrong, fmt.Sprintf("%s has grown by %.0f %%", r.name, 100*g))
		}
	}
	if o.after.goroutines > o.before.goroutines {
		wrong = append(wrong, fmt.Sprintf("%.0f goroutines are left, there were %.0f", o.after.goroutines, o.before.goroutines))
	}
	if o.after.descriptors > o.before.descriptors {
		wrong = append(wrong, fmt.Sprintf("%.0f descriptors are left, there were %.0f", o.after.descriptors, o.before.descriptors))
	}
	if o.server.Gaps > 0 {
		wrong = append(wrong, fmt.Sprintf("the server got %d posts before which one was missing", o.server.Gaps))
	}
	if added, done := o.n.added.Load(), o.n.acknowledged.Load(); added != done {
		wrong = append(wrong, fmt.Sprintf("%d posts were added, and %d have an outcome", added, done))
	}
	if o.n.more > 0 {
		wrong = append(wrong, fmt.Sprintf("%d mistakes:\n%s", o.n.more, strings.Join(o.n.wrong, "\n")))
	}
	if wrong == nil {
		return nil
	}
	return errors.New(strings.Join(wrong, "; "))
}

// Table has a row for each figure.
func (o *soak) Table() (table.Table, string) {
	if len(o.samples) == 0 {
		return nil, ""
	}
	t := table.Table{{"", "before", "first sample", "middle", "last", "growth", "after"}}
	for _, r := range resources {
		figure := func(s sample) string { return fmt.Sprintf("%.1f", r.of(s)) }
		t.Row(r.name+r.unit, figure(o.before), figure(o.samples[0]), figure(o.samples[len(o.samples)/2]),
			figure(o.samples[len(o.samples)-1]), fmt.Sprintf("%+.1f %%", 100*o.growth(r.of)), figure(o.after))
	}
	return t, fmt.Sprintf("%d connections for %v, %d faults of the server, %d seams. %d posts, each acknowledged once; the server got %d of them more than once. "+
		"%d questions answered, %d lost with their session and reported. %d ticks. Growth is from the second quarter to the last. %v.",
		o.clients, o.time, o.server.Faults, o.n.seams.Load(), o.n.acknowledged.Load(), o.server.Repeats, o.n.answers.Load(), o.n.lost.Load(), o.n.ticks.Load(), o.conditions)
}

// Chart has a panel for each figure.
func (o *soak) Chart() *chart.Picture {
	p := &chart.Picture{
		Name: "soak", Title: "What a process with many connections holds, while their server misbehaves", Columns: 2, Height: 140,
		Note: fmt.Sprintf("%s connections with subscriptions, questions and a ledger; %s faults. %s",
			chart.Number(float64(o.clients)), chart.Number(float64(o.server.Faults)), o.conditions.Date),
	}
	for i, r := range resources {
		style := chart.Series(i, r.name)
		line, highest := chart.Line{Style: style}, 1.0
		for _, s := range o.samples {
			highest = max(highest, r.of(s))
			line.Points = append(line.Points, chart.Point{X: s.after.Minutes(), Y: r.of(s)})
		}
		p.Panels = append(p.Panels, &chart.Panel{
			Title: r.name + r.unit, X: chart.Axis{Max: o.time.Minutes(), Label: "minutes"},
			Y: chart.Axis{Max: chart.RoundUp(highest * 1.05)}, Layers: []chart.Layer{line},
		})
	}
	return p
}
