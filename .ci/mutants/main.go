// Command mutants shows whether the tests find mistakes. Each patch in its directory breaks one promise of the
// library. The command applies the patch to a copy of the files, runs the tests of their package and then random
// histories. It prints which test failed first, and after what time. Run it at the root of the module:
//
//	REDIAL_LONG=1 go run ./.ci/mutants [-only name,...] [-histories 3000] [-o table.md]
//	go run ./.ci/mutants -check    # only whether each patch applies and compiles, and survivors.txt is right
//	go run ./.ci/mutants -made reconnect/backoff,reconnect/ledger [-every 10] [-histories 0] [-only Ledger.Add] [-v]
//
// With -made the command makes the mutants itself: in each function of the packages it replaces an
// operator, makes a condition always or never true, adds one to a constant, or removes a statement.
// It runs each mutant with the tests of the package that call its function, the fast ones first, then
// with histories, then (for a part of a Conn) with the tests of a Conn; with -histories 0
// only with the tests of the package. All mutants in functions are in one binary, and the environment
// chooses one of them. survivors.txt explains the mutants that may survive. A mutant that runs for
// ever, or takes all memory, is ended, and counts as caught.
//
// It exits with 1 if a mutant survives, and with 2 if a patch does not apply or does not compile.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// explained are the mutants that may survive, each with the reason.
var explained = map[string]string{
	"inbox-led-overtakes": "a message must come between two steps of the reader; " +
		"the walk of package lead has this mistake, and finds it",
	"watch-slow-call-missed": "a call must begin between two loads of the timer's callback, " +
		"which nothing in a test can order",
}

var (
	only      = flag.String("only", "", "the names of the patches, or the beginnings of names, with commas between; with -made: parts of names of mutants; empty: all")
	check     = flag.Bool("check", false, "only check that each patch applies and compiles")
	histories = flag.Int("histories", 3000, "how many random histories each mutant runs; 0: none")
	packages  = flag.String("made", "", "packages, with commas between, of which mutants are made")
	every     = flag.Int("every", 1, "with -made: run only every n-th mutant")
	verbose   = flag.Bool("v", false, "with -made: print the mutants that are caught, too")
	output    = flag.String("o", "", "a file for the table; empty: only the standard output")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	survived, err := run(ctx)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	case survived > 0:
		os.Exit(1)
	}
}

// run does what the flags say, and returns how many mutants have survived without an explanation.
func run(ctx context.Context) (survived int, err error) {
	known, err := readSurvivors(".ci/mutants/survivors.txt")
	if err != nil {
		return 0, err
	}
	if err := known.check(); err != nil {
		return 0, err
	}
	if *packages != "" {
		return runAllMade(ctx, known)
	}
	patches, err := load(".ci/mutants", *only)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := compile(ctx, dir, patches); err != nil {
		return 0, err
	}
	if *check {
		fmt.Printf("%d patches apply and compile\n", len(patches))
		return 0, nil
	}
	if os.Getenv("REDIAL_LONG") == "" {
		return 0, fmt.Errorf("this takes hours: set REDIAL_LONG=1, or say -check")
	}
	table := &table{}
	if *output != "" {
		if table.file, err = os.Create(*output); err != nil {
			return 0, err
		}
		defer table.file.Close()
	}
	table.head()
	for _, p := range patches {
		r, err := test(ctx, dir, p)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", p.name, err)
		}
		table.row(r)
	}
	return table.foot(), nil
}

// runAllMade makes and runs the mutants of the packages that -made names.
func runAllMade(ctx context.Context, known survivors) (survived int, err error) {
	if *every < 1 {
		return 0, fmt.Errorf("-every %d: it is 1 or more", *every)
	}
	for pkg := range strings.SplitSeq(*packages, ",") {
		n, err := runMade(ctx, pkg, *every, known)
		if err != nil {
			return survived, err
		}
		survived += n
	}
	return survived, nil
}

// table prints the result of each mutant.
type table struct {
	file                                       *os.File // nil: none
	mutants, own, histories, both, lost, known int
}

func (t *table) print(format string, args ...any) {
	fmt.Printf(format, args...)
	if t.file != nil {
		fmt.Fprintf(t.file, format, args...)
	}
}

func (t *table) head() {
	t.print("| mutant | promise | own tests | histories |\n|---|---|---|---|\n")
}

func (t *table) row(r result) {
	t.mutants++
	verdict := ""
	switch {
	case r.own.caught && r.histories.caught:
		t.both++
	case r.own.caught:
		t.own++
	case r.histories.caught:
		t.histories++
	case explained[r.name] != "":
		t.known++
		verdict = " SURVIVED, as explained: " + explained[r.name]
	default:
		t.lost++
		verdict = " SURVIVED"
	}
	t.print("| %s | %s | %s%s | %s |\n", r.name, cell(r.promise), cell(r.own.text), verdict, cell(r.histories.text))
}

// foot prints the counts, and returns how many mutants have survived without an explanation.
func (t *table) foot() (survived int) {
	t.print("\n%d mutants: %d caught by both, %d by their own tests only, %d by histories only; %d survived, and %d more as explained\n",
		t.mutants, t.both, t.own, t.histories, t.lost, t.known)
	return t.lost
}

// cell returns s as a cell of a table.
func cell(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "|", "\\|"), "\n", " ") }
