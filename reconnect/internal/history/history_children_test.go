package history

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process of its own runs a part of the histories. It writes lines to a pipe: "begin 17" before
// the history of seed 17, "fail" with what has failed, and "sum" with what it has counted.

// sum is what was counted.
type sum struct {
	Histories, Failed int
	Seconds           float64 // virtual
	Stakes            map[Invariant]int
	Events            map[string]int
}

func newSum() *sum { return &sum{Stakes: make(map[Invariant]int), Events: make(map[string]int)} }

// add adds what another process, or a history, has counted.
func (s *sum) add(o *sum) {
	s.Histories, s.Failed, s.Seconds = s.Histories+o.Histories, s.Failed+o.Failed, s.Seconds+o.Seconds
	for i, n := range o.Stakes {
		s.Stakes[i] += n
	}
	for k, n := range o.Events {
		s.Events[k] += n
	}
}

const step = "REDIAL_HISTORY_STEP" // the environment of a child: the difference of two seeds

func child() bool { return os.Getenv(step) != "" }

// runHistories runs the histories of a child.
func runHistories(t *testing.T) {
	pipe := os.NewFile(3, "pipe")
	defer pipe.Close()
	by, err := strconv.ParseUint(os.Getenv(step), 10, 64)
	require.NoError(t, err)
	all, start := newSum(), time.Now()
	for i := range uint64(*histories) {
		if *duration > 0 && time.Since(start) > *duration {
			break
		}
		seed := *firstSeed + i*by
		fmt.Fprintln(pipe, "begin", seed)
		p := drawn(t, seed)
		r := Run(t, p)
		all.add(&sum{1, 0, r.Seconds, r.Stakes, r.Events})
		if len(r.Violations) == 0 {
			continue
		}
		all.Failed++
		first := r.Violations[0]
		if *list {
			fmt.Fprintf(pipe, "fail %q\n", fmt.Sprint(violated(r)))
			continue
		}
		if *stopAtFirst {
			fmt.Fprintf(pipe, "fail %q\n", fmt.Sprintf("%v\n%v", first, p))
			break
		}
		small := Shrink(p, func(q *Plan) bool {
			return slices.ContainsFunc(Run(t, q).Violations, func(v Violation) bool { return v.Invariant == first.Invariant })
		})
		fmt.Fprintf(pipe, "fail %q\n", fmt.Sprintf("%v\n%v%s", first, small, small.Command()))
	}
	line, err := json.Marshal(all)
	require.NoError(t, err)
	fmt.Fprintf(pipe, "sum %s\n", line)
}

// violated returns the invariants that a history has violated.
func violated(r Result) (names []Invariant) {
	for _, v := range r.Violations {
		if !slices.Contains(names, v.Invariant) {
			names = append(names, v.Invariant)
		}
	}
	return names
}

// runChildren runs the histories in so many processes.
func runChildren(t *testing.T, processes int) *sum {
	all, until, total := newSum(), time.Now().Add(*duration), *histories
	if total == 0 {
		total = 300
		if *duration > 0 {
			total = math.MaxInt32
		}
	}
	ctx, cancel := context.WithCancel(t.Context()) // ends when no more histories are wanted
	defer cancel()
	var mu sync.Mutex // guards all
	var running sync.WaitGroup
	for i := range processes {
		running.Go(func() {
			n := (total - i + processes - 1) / processes
			for seed := *firstSeed + uint64(i); n > 0; {
				part, done := runChild(ctx, t, seed, n, processes, max(time.Until(until), 1))
				mu.Lock()
				all.add(part)
				enough := !*list && all.Failed > 20 || *stopAtFirst && all.Failed > 0
				mu.Unlock()
				if *stopAtFirst && enough {
					cancel()
				}
				if enough || *duration > 0 && time.Now().After(until) {
					return
				}
				seed, n = seed+uint64(done*processes), n-done
			}
		})
	}
	running.Wait()
	return all
}

// hang is how long one history may take, with what it takes to shrink it.
const hang = 3 * time.Minute

// runChild runs histories in one process, and returns how many it has run or begun: fewer than n if one has crashed, or ctx has ended.
// With -for the process takes that long at most.
func runChild(ctx context.Context, t *testing.T, seed uint64, n, by int, longest time.Duration) (part *sum, done int) {
	if *duration == 0 {
		longest = 0
	}
	read, write, err := os.Pipe()
	require.NoError(t, err)
	var output bytes.Buffer
	c := exec.CommandContext(ctx, os.Args[0],
		"-test.run=^TestHistories$",
		fmt.Sprint("-histories=", n),
		fmt.Sprint("-seed=", seed),
		fmt.Sprint("-for=", longest),
		"-above="+*allAbove,
		"-only="+*only,
		"-without="+*without,
		fmt.Sprint("-first=", *stopAtFirst),
		fmt.Sprint("-list=", *list),
	)
	c.Env = append(os.Environ(), step+"="+strconv.Itoa(by), "GOMAXPROCS=1")
	if os.Getenv("GOGC") == "" {
		c.Env = append(c.Env, "GOGC=400") // a history leaves much garbage, and keeps little
	}
	c.Stdout, c.Stderr, c.ExtraFiles = &output, &output, []*os.File{write}
	err = c.Start()
	write.Close()
	require.True(t, err == nil || ctx.Err() != nil, "%v", err)
	watchdog := time.AfterFunc(hang, func() { c.Process.Signal(syscall.SIGQUIT) })
	part, last := newSum(), ""
	for lines := bufio.NewScanner(read); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "begin":
			watchdog.Reset(hang)
			last = rest
			done++
		case "fail":
			text, _ := strconv.Unquote(rest)
			t.Error("seed " + last + ": " + text)
		case "sum":
			err := json.Unmarshal([]byte(rest), part)
			require.True(t, err == nil || ctx.Err() != nil, "%v", err) // a child that is killed may leave a part of a line
		}
	}
	watchdog.Stop()
	read.Close()
	if err := c.Wait(); err != nil && ctx.Err() == nil { // the end of ctx kills a child
		failed, _ := strconv.ParseUint(last, 10, 64)
		t.Errorf("seed %s: the process has ended: %v\n%.20000s\n%s", last, err, output.String(), drawn(t, failed).Command())
		part.Failed++
		part.Histories = done
	}
	return part, done
}
