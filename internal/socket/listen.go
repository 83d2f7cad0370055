package socket

// Listen opens the socket. A socket that a daemon left behind when it died is
// replaced; one that somebody listens on, or a file of any other kind, is an
// error and is never removed. No link is followed at the path itself.
func Listen(s Config) (*Listener, error) {
	if err := s.Check("socket"); err != nil {
		return nil, err
	}
	if s.Given != nil {
		return listenGiven(s)
	}
	if err := s.PrepareDirectory(); err != nil {
		return nil, err
	}
	lock, err := lockFor(s.Path)
	if err != nil {
		return nil, err
	}
	l := &Listener{config: s, lock: lock}
	if err := l.bind(); err != nil {
		lock.Close()
		return nil, err
	}
	return l, nil
}
