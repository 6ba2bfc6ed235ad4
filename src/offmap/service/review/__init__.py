"""The review page: a person looks at groups of unknown rows, names them, and has them learnt."""
