package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// greeter is a program whose command says hello.
var greeter = Program{Name: "greeter", Usage: "usage: greeter hello [-to WHOM]\n", Commands: map[string]Func{
	"hello": func(_ context.Context, args []string, s Streams) error {
		flags := flag.NewFlagSet("greeter hello", flag.ContinueOnError)
		to := flags.String("to", "all", "greet this `one`")
		if err := Parse(flags, args, s); err != nil {
			return err
		}
		if *to == "nobody" {
			return errors.New("there is nobody")
		}
		_, err := fmt.Fprint(s.Out, "hello ", *to)
		return err
	},
}}

func TestTheExitCodeSaysWhatWasWrong(t *testing.T) {
	for _, c := range []struct {
		args       string
		code       int
		out, notes string
	}{
		{"hello", 0, "hello all", ""},
		{"hello -to ann", 0, "hello ann", ""},
		{"hello -to nobody", 1, "", "greeter hello: there is nobody\n"},
		{"", 2, "", "usage: greeter hello [-to WHOM]\n"},
		{"bye", 2, "", "greeter: there is no command \"bye\"\ngreeter: see greeter -h\n"},
		{"hello bob", 2, "", "greeter hello: unexpected arguments [\"bob\"]\ngreeter hello: see greeter hello -h\n"},
		{"hello -x", 2, "", "greeter hello: flag provided but not defined: -x\ngreeter hello: see greeter hello -h\n"},
		{"help", 0, "usage: greeter hello [-to WHOM]\n", ""},
		{"-h", 0, "usage: greeter hello [-to WHOM]\n", ""},
		{"hello -h", 0, "Usage of greeter hello:\n  -to one\n    \tgreet this one (default \"all\")\n", ""},
	} {
		var out, notes strings.Builder
		require.Equal(t, c.code, greeter.Run(t.Context(), strings.Fields(c.args), Streams{Out: &out, Notes: &notes}), c.args)
		require.Equal(t, c.out, out.String(), c.args)
		require.Equal(t, c.notes, notes.String(), c.args)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A command that ignores the errors of its standard output fails nevertheless.
func TestAFullDiskThatTheCommandIgnoresIsAFailure(t *testing.T) {
	say := func(_ context.Context, _ []string, s Streams) error {
		fmt.Fprintln(s.Out, "hello")
		return nil
	}
	p := Program{Name: "x", Commands: map[string]Func{"say": Checked(say)}}
	var notes strings.Builder
	require.Equal(t, 4, p.Run(t.Context(), []string{"say"}, Streams{Out: fullDisk{}, Notes: &notes}))
	require.Equal(t, "x say: standard output: no space left on device\n", notes.String())
}
