package articles

import (
	"fmt"
	"strings"

	"github.com/redial-go/redial/bench/articles/waits"
	"github.com/redial-go/redial/bench/internal/cli"
)

// addParams adds the flags for the parameters of waiting rules.
func addParams(flags *cli.Flags, p *waits.Params) {
	flags.Pause(&p.Base, string(waits.Base), "the first wait, before jitter, of the policies that have it; default: their own, as for the five that follow")
	flags.Number(&p.Multiplier, 1, string(waits.Multiplier), "how many times longer each wait is")
	flags.Pause(&p.Cap, string(waits.Cap), "the longest wait, before jitter")
	flags.NumberOrNone(&p.Jitter, string(waits.Jitter), "how wide the jitter is, as a share of the wait; 0: none")
	flags.Pause(&p.Spread, string(waits.Spread), "the range of the first wait, or of what is added to each")
	flags.Number(&p.Share, 0, string(waits.Share), "the share of the outage's age that a wait is")
}

// chooseRules is waits.Choose with an error that names the flag.
func chooseRules(name string, from []waits.Rule, names string, p waits.Params) ([]waits.Rule, error) {
	rules, err := waits.Choose(from, names, p)
	if err != nil && !strings.HasPrefix(err.Error(), "-") {
		err = fmt.Errorf("-%s: %w", name, err)
	}
	return rules, err
}

// ruleHelp returns the names of the rules and the flags that they take.
func ruleHelp(rules []waits.Rule) string {
	var lines []string
	for _, r := range rules {
		line := r.Name + ": " + r.Summary
		for i, p := range r.Takes {
			if i == 0 {
				line += ";"
			}
			line += " -" + string(p)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
