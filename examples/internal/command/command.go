// Package command runs an example that has several commands, such as "lines serve" and
// "lines talk".
//
//	func main() { os.Exit(example.Main()) }
//
//	var example = command.Program{Name: "lines", Usage: usage, Commands: map[string]command.Func{"talk": talk}}
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// Program is an example.
type Program struct {
	Name     string
	Usage    string // lines that say how to use it, the last one ended too
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

// Main is Run in a Context, with the arguments and the streams of the process.
func (p *Program) Main() (code int) {
	ctx, stop := Context()
	defer stop()
	return p.Run(ctx, os.Args[1:], Streams{os.Stdin, os.Stdout, os.Stderr})
}

// Run carries out the command that args begin with. It returns the exit code: 0, 1 for a
// failure, 2 for wrong usage.
func (p *Program) Run(ctx context.Context, args []string, s Streams) (code int) {
	if len(args) == 0 || p.Commands[args[0]] == nil {
		help := len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0])
		if len(args) > 0 && !help {
			fmt.Fprintf(s.Notes, "%s: there is no command %q\n", p.Name, args[0])
		}
		fmt.Fprint(s.Notes, p.Usage)
		if help {
			return 0
		}
		return 2
	}
	err := p.Commands[args[0]](ctx, args[1:], s)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	default:
		fmt.Fprintf(s.Notes, "%s %s: %v\n", p.Name, args[0], err)
		return 1
	}
}

// errUsage is the error of arguments that are wrong. Parse has said why.
var errUsage = errors.New("wrong usage")

// Parse parses args. Behind the flags there must be one argument for each of want, which says
// what it is. A Func returns the error of Parse as it is.
func Parse(flags *flag.FlagSet, args []string, s Streams, want ...string) error {
	flags.SetOutput(s.Notes)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return errUsage
	}
	switch n := flags.NArg(); {
	case n < len(want):
		fmt.Fprintf(s.Notes, "%s: the %s is missing\n", flags.Name(), want[n])
	case n > len(want):
		fmt.Fprintf(s.Notes, "%s: unexpected arguments %q\n", flags.Name(), flags.Args()[len(want):])
	default:
		return nil
	}
	flags.Usage()
	return errUsage
}
