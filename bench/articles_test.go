package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/storm"
	"github.com/redial-go/redial/bench/herd/lab"
	"github.com/redial-go/redial/bench/internal/cli"
)

// page is ARTICLES.md, and the rows of those of its tables that have commands.
type page struct {
	text  string
	short map[string]string // what a letter stands for at the beginning of a command
	rows  []articleRow
}

type articleRow struct{ name, command, tests string }

func readArticles(t *testing.T) *page {
	text, err := os.ReadFile("ARTICLES.md")
	require.NoError(t, err)
	a := &page{text: string(text), short: map[string]string{}}
	for _, m := range regexp.MustCompile("`([A-Z])` stands for\\s+`(go run \\. [^`]+)`").FindAllStringSubmatch(a.text, -1) {
		a.short[m[1]] = m[2]
	}
	for _, m := range regexp.MustCompile("and `([A-Z])` for\\s+`(go run \\. [^`]+)`").FindAllStringSubmatch(a.text, -1) {
		a.short[m[1]] = m[2]
	}
	var head []string
	for line := range strings.Lines(a.text) {
		if !strings.HasPrefix(line, "|") {
			head = nil
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		command := slices.Index(head, "command")
		switch {
		case head == nil:
			head = cells
		case command < 0 || strings.HasPrefix(cells[0], "---"):
		default:
			row := articleRow{name: cells[0], command: cells[command]}
			if i := slices.Index(head, "test"); i >= 0 && i < len(cells) {
				row.tests = cells[i]
			}
			a.rows = append(a.rows, row)
		}
	}
	return a
}

var quoted = regexp.MustCompile("`([^`]+)`")

// commands returns the commands of a text in full.
func (a *page) commands(text string) (all []string) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		first, rest, _ := strings.Cut(m[1], " ")
		switch {
		case strings.HasPrefix(m[1], "go run . ") || strings.HasPrefix(m[1], "go test "):
			all = append(all, m[1])
		case a.short[first] != "" && rest != "":
			all = append(all, a.short[first]+" "+rest)
		}
	}
	return all
}

func TestEveryRowOfTheArticlesHasACommandAndItsTestsAreThere(t *testing.T) {
	a, there := readArticles(t), testsOf(t, "..")
	require.Greater(t, len(a.rows), 60)
	judged := 0
	for _, row := range a.rows {
		require.True(t, len(a.commands(row.command)) > 0 || strings.HasPrefix(row.command, "the same"), "%s: %s", row.name, row.command)
		for _, m := range quoted.FindAllStringSubmatch(row.tests, -1) {
			require.True(t, there[m[1]], "%s: there is no test %s", row.name, m[1])
			judged++
		}
	}
	require.Greater(t, judged, 40)
}

// No command of ARTICLES.md, and none of README's first screen, is a mistake. Only the one for a server of the
// reader's is left out.
func TestEveryCommandOfTheArticlesRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	a, there := readArticles(t), testsOf(t, "..")
	var real, others []string
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(readme), "## The parts")
	for _, command := range slices.Concat(a.commands(a.text), a.commands(first)) {
		switch list := &others; {
		case strings.HasPrefix(command, "go test "):
			requireTests(t, there, command)
		default:
			if strings.HasPrefix(command, "go run . storm ") {
				list = &real
			}
			if !slices.Contains(*list, command) && !strings.HasSuffix(command, " -policy") && !strings.HasSuffix(command, " -scenario") && !strings.Contains(command, " -url ") {
				*list = append(*list, command)
			}
		}
	}
	require.Greater(t, len(others), 40)
	require.Greater(t, len(real), 5)
	t.Run("on real sockets", func(t *testing.T) { // side by side, because they wait for most of the time
		t.Parallel()
		var group sync.WaitGroup
		for _, command := range real {
			group.Go(func() { runShort(t, command) })
		}
		group.Wait()
	})
	for _, command := range others {
		t.Run(command, func(t *testing.T) { t.Parallel(); runShort(t, command) })
	}
}

// requireTests fails if "go test" would run no test of that package.
func requireTests(t *testing.T, there map[string]bool, command string) {
	words := strings.Fields(command)
	dir, pattern := words[len(words)-1], "Test"
	if i := slices.Index(words, "-run"); i >= 0 {
		pattern = words[i+1]
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, command)
	found := false
	for name := range there {
		function, ok := strings.CutPrefix(name, filepath.Base(dir)+".")
		found = found || ok && regexp.MustCompile(pattern).MatchString(function)
	}
	require.True(t, found, command)
}

// shorter makes a command short. A flag that is given twice has its last value.
var shorter = map[string]string{
	"storm":         "-clients 20 -lambda 200ms -timeout 300ms -before 0 -stop 100ms -watch 11s",
	"waits":         "-seed 1",
	"lone":          "-seeds 1",
	"herd":          "-n 50 -outage 200ms -watch 20s",
	"defaults":      "-largest 10",
	"report":        "-rps 1000 -seeds 1 -n 100",
	"soak":          "-clients 10 -time 2s -every 500ms",
	"sim":           "-rps 1000 -seeds 1",
	"sim aws":       "-reps 1",
	"sim drain":     "-n 100 -seeds 1",
	"sim fleet":     "-n 500 -seeds 1",
	"sim letters":   "",
	"sim ratelimit": "-n 50 -seeds 1",
	"sim rotation":  "-n 100",
	"sim storm":     "-watch 40s -seeds 1 -step 10s -longest 20s",
	"sim tiers":     "-rps 5",
}

// runShort runs a command in a short form, in which its files go to a directory of the test.
func runShort(t *testing.T, command string) {
	args := strings.Fields(strings.TrimPrefix(command, "go run . "))
	kind := args[0]
	if i := slices.Index(args, "-model"); i >= 0 && args[i+1] != "queueing" {
		kind += " " + args[i+1]
	}
	if raceEnabled && kind == "report" {
		t.Logf("%s: left out, because the tests of package report draw all of it under the race detector", command)
		return
	}
	more, ok := shorter[kind]
	if !ok {
		t.Errorf("%s: there is no short form of %q", command, kind)
		return
	}
	dir := t.TempDir()
	var files []string
	for i, arg := range args[:len(args)-1] {
		if slices.Contains([]string{"-svg", "-csv", "-series", "-out"}, arg) && args[i+1] != "-" {
			args[i+1] = filepath.Join(dir, args[i+1])
			files = append(files, args[i+1])
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	want := 0
	switch {
	case slices.Contains(args, "-serve"):
		args[slices.Index(args, "-serve")+1] = "127.0.0.1:0"
		time.AfterFunc(2*time.Second, func() { cancel(cli.ErrInterrupted) })
		more, want = "", cli.ExitInterrupted
	case slices.Contains(args, "-connect"):
		address, end := serveStorm(t)
		defer end()
		args[slices.Index(args, "-connect")+1] = address
		more = "-clients 20 -lambda 200ms -timeout 300ms -watch 11s"
	}
	out, errs, code := bench().Try(ctx, append(args, strings.Fields(more)...)...)
	if code != want || out == "" {
		t.Errorf("%s\nhas exit code %d and prints %q\n%s", command, code, out, errs)
	}
	for _, file := range files {
		if about, err := os.Stat(file); err != nil || about.Size() == 0 {
			t.Errorf("%s\nhas not written %s: %v", command, file, err)
		}
	}
}

// serveStorm is a server of a storm until end is called.
func serveStorm(t *testing.T) (address string, end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	listening, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- lab.ServeStorm(ctx, "127.0.0.1:0", storm.Server{}, func(address string) { listening <- address }, func(lab.ServedSecond) {})
	}()
	return <-listening, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
