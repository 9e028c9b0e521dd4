// Command bench shows what a retry policy does to a server, by simulation and with real
// herds on real sockets. "bench" alone lists the commands;
// README.md says more.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/term"
)

// command is one word after "bench". Run gets what follows it, prints results to
// c.out, and returns a [usageError] for what the user got wrong. When ctx ends it
// prints what it has and returns the context's cause.
type command struct {
	name    string
	summary string // one line, without a full stop
	run     func(ctx context.Context, c *console, args []string) error
}

var commands []command

// register adds a command. Each has a file of its own and calls this from init.
func register(c command) {
	commands = append(commands, c)
	slices.SortFunc(commands, func(a, b command) int { return cmp.Compare(a.name, b.name) })
}

// console is where a command prints.
type console struct {
	out      io.Writer // results
	errs     io.Writer // everything else
	terminal bool      // errs is one
}

// usageError is a mistake of the user's. It ends the program with code 2.
type usageError struct{ error }

// The program's exit codes beside 0.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// errInterrupted is the cause of the context that Ctrl-C ends.
var errInterrupted = errors.New("interrupted")

func main() {
	os.Exit(run())
}

func run() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	watching := make(chan struct{})
	go func() { // ends with ctx, which cancel below ends
		defer close(watching)
		select {
		case <-signals:
			signal.Stop(signals) // a second one kills
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(nil); <-watching }()
	c := &console{out: os.Stdout, errs: os.Stderr, terminal: term.IsTerminal(int(os.Stderr.Fd()))}
	return dispatch(ctx, c, os.Args[1:])
}

// dispatch runs the command that args name, and returns the exit code.
func dispatch(ctx context.Context, c *console, args []string) int {
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		usage(c.out)
		return 0
	}
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == args[0] })
	if i < 0 {
		fmt.Fprintf(c.errs, "bench: there is no command %q: \"bench help\" lists them\n", args[0])
		return exitUsage
	}
	err := commands[i].run(ctx, c, args[1:])
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(c.errs, "bench: interrupted; the results until then are kept")
		return exitInterrupted
	}
	fmt.Fprintf(c.errs, "bench %s: %v\n", args[0], err)
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: bench COMMAND [flags]; \"bench COMMAND -h\" lists the flags")
	fmt.Fprintln(w)
	for _, c := range commands {
		fmt.Fprintf(w, "  %-10s %s\n", c.name, c.summary)
	}
}

// parse parses the flags of a command, which has no other arguments. A mistake is
// a usageError of one line; -h prints the flags and is flag.ErrHelp.
func parse(c *console, flags *flag.FlagSet, args []string) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(c.out)
		fmt.Fprintf(c.out, "usage: bench %s [flags]\n", flags.Name())
		flags.PrintDefaults()
		return err
	case err != nil:
		return usageError{fmt.Errorf("%w; \"bench %s -h\" lists the flags", err, flags.Name())}
	case flags.NArg() > 0:
		return usageError{fmt.Errorf("unexpected argument %q", flags.Arg(0))}
	}
	return nil
}
