package articles

import (
	"strings"

	"github.com/redial-go/redial/bench/articles/waits"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/pick"
)

// addRules adds a flag for waiting rules, and the flags for their parameters. Each parameter that is
// given must be one of a rule that is chosen.
func addRules(f *cli.Flags, into *[]waits.Rule, name, usual, help string, from []waits.Rule) *waits.Params {
	p := new(waits.Params)
	names := f.String(name, usual, help+", separated by commas, or all\n"+strings.Join(pick.Names(from, waits.Rule.Help), "\n"))
	f.Pause(&p.Base, string(waits.Base), "the first wait, before jitter, of the policies that have it; default: their own, as for the five that follow")
	f.Number(&p.Multiplier, 1, string(waits.Multiplier), "how many times longer each wait is")
	f.Pause(&p.Cap, string(waits.Cap), "the longest wait, before jitter")
	f.NumberOrNone(&p.Jitter, string(waits.Jitter), "how wide the jitter is, as a share of the wait; 0: none")
	f.Pause(&p.Spread, string(waits.Spread), "the range of the first wait, or of what is added to each")
	f.Number(&p.Share, 0, string(waits.Share), "the share of the outage's age that a wait is")
	f.Check(func() (err error) {
		if *into, err = cli.Some("-"+name, *names, from, waits.NameOf); err != nil {
			return err
		}
		return p.Check(*into)
	})
	return p
}
