// Package cli is the frame of the programs of bench: commands, flags, progress, tables and
// files.
package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// Program is a list of commands, or one command that needs no name.
type Program struct {
	Name     string
	Commands []Command
	Others   []Other
}

// Other is a program that is listed with the commands, such as one of another module.
type Other struct {
	Name    string
	Summary string // one line, without a full stop
	Line    string // the command line that runs it
}

// Command is one word after the name of a program.
type Command struct {
	Name    string
	Summary string // one line, without a full stop
	Example string // flags to try
	New     func() Experiment
	models  []Command // instead of New: see [Sim]
}

// Console is where a command prints.
type Console struct {
	Out      io.Writer // results
	Errs     io.Writer // everything else
	Terminal bool      // Errs is one

	name      string // of the program and the command
	modelFlag string // and the model
}

// UsageError is a mistake of the user's. It ends the program with [ExitUsage].
type UsageError struct{ error }

// Usage returns err as a [UsageError]; nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return UsageError{err}
}

// The exit codes beside 0.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitInterrupted = 130
)

// ErrInterrupted is the cause of the context that Ctrl-C ends.
var ErrInterrupted = errors.New("interrupted")

// Main runs the program with the arguments of the process, until it is done or Ctrl-C ends
// it, and returns the exit code.
func (p Program) Main() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	watching := make(chan struct{})
	go func() { // ends with ctx, which cancel below ends
		defer close(watching)
		select {
		case <-signals:
			signal.Stop(signals) // a second one kills
			cancel(ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(nil); <-watching }()
	c := &Console{Out: os.Stdout, Errs: os.Stderr, Terminal: isTerminal(os.Stderr)}
	return p.Do(ctx, c, os.Args[1:])
}

// isTerminal reports whether f is one, or another device such as /dev/null.
func isTerminal(f *os.File) bool {
	about, err := f.Stat()
	return err == nil && about.Mode()&os.ModeCharDevice != 0
}

// Try runs the program for a test, and returns what it prints and its exit code.
func (p Program) Try(ctx context.Context, args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	code = p.Do(ctx, &Console{Out: &o, Errs: &e}, args)
	return o.String(), e.String(), code
}

// Do runs the command that args name, and returns the exit code.
func (p Program) Do(ctx context.Context, c *Console, args []string) int {
	c.name = p.Name
	command := p.Commands[0]
	if len(p.Commands) > 1 {
		if len(args) == 0 || slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
			p.usage(c.Out)
			return 0
		}
		i := slices.IndexFunc(p.Commands, func(c Command) bool { return c.Name == args[0] })
		if other := slices.IndexFunc(p.Others, func(o Other) bool { return o.Name == args[0] }); other >= 0 {
			fmt.Fprintf(c.Errs, "%s: %s is another program: %s\n", p.Name, args[0], p.Others[other].Line)
			return ExitUsage
		}
		if i < 0 {
			fmt.Fprintf(c.Errs, "%s: there is no command %q: \"%s help\" lists them\n", p.Name, args[0], p.Name)
			return ExitUsage
		}
		command = p.Commands[i]
		args = args[1:]
		c.name += " " + command.Name
	}
	if command.models != nil {
		var err error
		if command, args, err = c.model(command.models, args); err != nil {
			fmt.Fprintf(c.Errs, "%s: %v\n", c.name, err)
			return ExitUsage
		}
		if command.New == nil { // all of them are listed
			return 0
		}
	}
	out := &noted{Writer: c.Out}
	c.Out = out
	err := c.do(ctx, command, args)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrInterrupted) && out.something:
		fmt.Fprintf(c.Errs, "%s: interrupted; the results until then are kept\n", p.Name)
		return ExitInterrupted
	case errors.Is(err, ErrInterrupted):
		fmt.Fprintf(c.Errs, "%s: interrupted before there was a result\n", p.Name)
		return ExitInterrupted
	}
	fmt.Fprintf(c.Errs, "%s: %v\n", c.name, err)
	if _, ok := errors.AsType[UsageError](err); ok {
		return ExitUsage
	}
	return ExitFailed
}

// noted is a writer that knows whether anything was written. It is for one goroutine, as Console.Out is.
type noted struct {
	io.Writer
	something bool
}

func (n *noted) Write(b []byte) (int, error) {
	n.something = n.something || len(b) > 0
	return n.Writer.Write(b)
}

func (p Program) usage(w io.Writer) {
	fmt.Fprintf(w, "usage: %s COMMAND [flags]; \"%s COMMAND -h\" lists the flags\n\n", p.Name, p.Name)
	list(w, slices.SortedFunc(slices.Values(p.Commands), func(a, b Command) int { return strings.Compare(a.Name, b.Name) }))
	for _, o := range p.Others {
		fold(w, "  "+o.Name, 13, o.Summary+": "+o.Line)
	}
}

// list prints the names of commands and what they do.
func list(w io.Writer, commands []Command) {
	for _, c := range commands {
		fold(w, "  "+c.Name, 13, c.Summary)
	}
}

// parse parses the flags of a command, which has no other arguments. A mistake is a
// [UsageError] of one line; -h prints the flags and is flag.ErrHelp.
func (c *Console) parse(command Command, f *Flags, args []string) error {
	f.SetOutput(io.Discard)
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.help(command, f)
		return err
	case err != nil:
		return Usage(fmt.Errorf("%w; \"%s%s -h\" lists the flags", err, c.name, c.modelFlag))
	case f.NArg() > 0:
		return Usage(fmt.Errorf("unexpected argument %q", f.Arg(0)))
	}
	return nil
}
