package program

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Filter is a program whose standard output is apart from its standard error, which is in
// Output.
type Filter struct {
	*Program
	Out *Output // standard output

	want string // the lines that the test has waited for
}

// StartFilter starts the program of this test binary, as Start does.
func StartFilter(t *testing.T, args ...string) *Filter {
	t.Helper()
	f := &Filter{}
	f.Program = StartWith(t, func(p *Program) {
		in, err := p.Cmd.StdinPipe()
		require.NoError(t, err)
		f.Out = p.NewOutput()
		p.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = in, f.Out, p
	}, args...)
	return f
}

// WantLines waits for the next lines of the standard output.
func (f *Filter) WantLines(want ...string) {
	f.t.Helper()
	for _, line := range want {
		f.want += line + "\n"
		f.Out.Find("^" + regexp.QuoteMeta(f.want))
	}
}
