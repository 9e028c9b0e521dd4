package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/redial-go/redial/bench/peers"
)

func init() {
	if peers.IsChild() { // a server or a client of the table: it never gets as far as main
		os.Exit(peers.ChildMain())
	}
	register(command{"peers", "measure redial beside other libraries on real sockets: one table", measurePeers})
}

// peersOptions are the flags of "bench peers".
type peersOptions struct {
	peers.Options
	svg string
}

func measurePeers(ctx context.Context, c *console, args []string) error {
	o, err := parsePeers(c, args)
	if err != nil {
		return err
	}
	before := load()
	p := newProgress(c, "measure", o.Steps())
	o.Progress = func() { p.add(1) }
	report, failure := peers.Run(ctx, o.Options)
	p.end()
	table := c.out
	if o.svg == "-" {
		table = c.errs
	}
	if err := report.Write(table); err != nil {
		return err
	}
	note := fmt.Sprintf("%s/%s, %s, %d processors; load average %s before, %s after",
		runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.NumCPU(), before, load())
	fmt.Fprintln(table, note)
	if failure != nil {
		return failure
	}
	if o.svg == "" {
		return nil
	}
	picture := report.Picture(note)
	if picture == nil {
		return fmt.Errorf("draw %s: none of the rows has ratios", o.svg)
	}
	return writeFile(c, o.svg, picture.WriteSVG)
}

func parsePeers(c *console, args []string) (*peersOptions, error) {
	o := &peersOptions{}
	usual, long := peers.Rows()
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	only := flags.String("only", "", "the `rows` to measure, separated by commas (default: all that do not take long)\n"+
		strings.Join(usual, ", ")+"; and these take long: "+strings.Join(long, ", "))
	among := flags.String("peers", "", "the `peers` to measure, separated by commas; the first of them all is the base, and always measured (default: all)\n"+
		strings.Join(peers.Names(), ", "))
	flags.IntVar(&o.Rounds, "rounds", 9, "rounds of each row, each in a random order")
	flags.BoolVar(&o.Long, "long", os.Getenv("REDIAL_LONG") == "1", "the rows that take long as well; so says REDIAL_LONG=1")
	flags.StringVar(&o.svg, "svg", "", "draw the ratios to this file; - is standard output")
	if err := parse(c, flags, args); err != nil {
		return nil, err
	}
	if o.Rounds < 1 {
		return nil, usageError{fmt.Errorf("want at least one of -rounds, not %d", o.Rounds)}
	}
	o.Rows, o.Peers = list(*only), list(*among)
	if err := o.Validate(); err != nil {
		return nil, usageError{err}
	}
	if err := checkFile(o.svg); err != nil {
		return nil, usageError{err}
	}
	return o, nil
}

// load is the load average of the last minute, or "unknown".
func load() string {
	text, err := os.ReadFile(filepath.Join("/proc", "loadavg"))
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 0 {
		return fields[0]
	}
	return "unknown"
}
