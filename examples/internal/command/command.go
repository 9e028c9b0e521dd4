// Package command runs an example from the command line. Results and help go to standard output,
// and errors to standard error. The exit code is 0, 1 for a failure, 2 for wrong usage, or 4 if
// standard output could not be written.
//
// An example with one command calls [Main]. An example with several is a [Program]:
//
//	func main() { os.Exit(example.Main()) }
//
//	var example = command.Program{Name: "lines", Usage: usage, Commands: map[string]command.Func{"talk": talk}}
package command

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
	"sync"
	"syscall"
	"time"
)

// Program is an example with several commands.
type Program struct {
	Name     string
	Usage    string // the help: lines, the last one ended too
	Commands map[string]Func
}

// Func carries out a command, until it is done or ctx ends. It calls [Parse] first.
type Func func(ctx context.Context, args []string, s Streams) error

// Streams are what a command reads and writes.
type Streams struct {
	In    io.Reader
	Out   io.Writer
	Notes io.Writer // standard error
}

// Context returns a context that ends with the first Ctrl-C or SIGTERM. A second one ends the
// program at once. stop ends the context, and must be called in the end.
func Context() (ctx context.Context, stop func()) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// InterruptLimit limits the time that a program waits for its peers after Ctrl-C. It is half of the half
// second within which a program ends, because the machine may be slow.
const InterruptLimit = 250 * time.Millisecond

// Leave returns a context for the end of a program, such as the wait for the last answers. It is done after
// limit, with cause late, or InterruptLimit after ctx is done. A nil late means context.DeadlineExceeded. The
// caller must call stop.
func Leave(ctx context.Context, limit time.Duration, late error) (leaving context.Context, stop func()) {
	leaving, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	if late == nil {
		late = context.DeadlineExceeded
	}
	end := func() { cancel(late) }
	timer := time.AfterFunc(limit, end)
	stopWatching := context.AfterFunc(ctx, func() { time.AfterFunc(InterruptLimit, end) })
	return leaving, func() {
		timer.Stop()
		stopWatching()
		cancel(nil)
	}
}

// Main runs an example with one command in a [Context], with the arguments and the streams of the
// process, and returns the exit code.
func Main(name string, f Func) (code int) {
	ctx, stop := Context()
	defer stop()
	s := Streams{os.Stdin, os.Stdout, os.Stderr}
	return exit(name, f(ctx, os.Args[1:], s), s)
}

// Main is Run in a [Context], with the arguments and the streams of the process.
func (p *Program) Main() (code int) {
	ctx, stop := Context()
	defer stop()
	return p.Run(ctx, os.Args[1:], Streams{os.Stdin, os.Stdout, os.Stderr})
}

// Run carries out the command that args begin with, and returns the exit code.
func (p *Program) Run(ctx context.Context, args []string, s Streams) (code int) {
	if len(args) == 0 {
		fmt.Fprint(s.Notes, p.Usage)
		return 2
	}
	name := args[0]
	if f := p.Commands[name]; f != nil {
		return exit(p.Name+" "+name, f(ctx, args[1:], s), s)
	}
	if slices.Contains([]string{"-h", "-help", "--help", "help"}, name) {
		fmt.Fprint(s.Out, p.Usage)
		return 0
	}
	return exit(p.Name, &UsageError{fmt.Errorf("there is no command %q", name)}, s)
}

// Checked returns a Func that calls f, which need not check the errors of its standard output: if f
// returns nil, the result is the first of them, as an [OutputError]. f gets an Out that is not an
// [os.File].
func Checked(f Func) Func {
	return func(ctx context.Context, args []string, s Streams) error {
		out := &output{Writer: s.Out}
		s.Out = out
		err := f(ctx, args, s)
		if failed := out.failure(); failed != nil && err == nil {
			err = &OutputError{failed}
		}
		return err
	}
}

// output is a Writer that keeps its first error.
type output struct {
	io.Writer
	mu  sync.Mutex // guards err
	err error
}

func (o *output) Write(p []byte) (n int, err error) {
	n, err = o.Writer.Write(p)
	if err != nil {
		o.mu.Lock()
		o.err = cmp.Or(o.err, err)
		o.mu.Unlock()
	}
	return n, err
}

// failure returns the first error, or nil.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// exit prints err, unless help was asked for, and returns the exit code.
func exit(name string, err error, s Streams) (code int) {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(s.Notes, "%s: %v\n", name, err)
	if _, wrong := errors.AsType[*UsageError](err); wrong {
		fmt.Fprintf(s.Notes, "%s: see %s -h\n", name, name)
		return 2
	}
	if _, output := errors.AsType[*OutputError](err); output {
		return 4
	}
	return 1
}

// OutputError is the error of a Func that could not write its standard output.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return "standard output: " + e.Err.Error() }

// Unwrap returns Err.
func (e *OutputError) Unwrap() error { return e.Err }

// UsageError is the error of a Func whose arguments are wrong.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UsageError) Unwrap() error { return e.Err }

// About sets the help of flags: about comes before the flags, and says what the command does. It ends with a line feed.
func About(flags *flag.FlagSet, about string) {
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: %s [flags]\n\n%s\n", flags.Name(), about)
		flags.PrintDefaults()
	}
}

// Parse parses args, which must all be flags. With -h Parse prints the help to s.Out and returns
// [flag.ErrHelp]; any other error is a [UsageError]. A Func returns the error of Parse as it is.
func Parse(flags *flag.FlagSet, args []string, s Streams) error {
	flags.SetOutput(io.Discard) // because package flag prints help and errors to one writer
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(s.Out)
		flags.Usage()
		return err
	case err != nil:
		return &UsageError{err}
	case flags.NArg() > 0:
		return &UsageError{fmt.Errorf("unexpected arguments %q", flags.Args())}
	}
	return nil
}
