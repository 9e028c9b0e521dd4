// Package terminal is what the examples share that talk to a user: a screen that shows lines
// above the one that the user is typing, and the lines that the user has typed.
//
//	s := terminal.NewScreen(os.Stderr)
//	s.Start(func() string { return "ready > " })
//	defer s.Close()
//	s.Note("connected to %s", host)
//
//	in := terminal.NewInput(os.Stdin, maxLine)
//	defer in.Close()
//	line, more := <-in.Lines()
//
// It needs no raw mode: the terminal's own line editor stays in use.
package terminal
