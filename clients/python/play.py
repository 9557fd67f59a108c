"""Plays a whole game of each ruleset, by random legal moves, on the server whose URL is the only argument.

Uses nothing but the generated client.
"""

import random
import sys
import time
from functools import partial
from http import HTTPStatus
from typing import TypeVar
from uuid import UUID, uuid4

from tavola_client import AuthenticatedClient, Client
from tavola_client.api.events import list_events
from tavola_client.api.games import create_game, get_game
from tavola_client.api.history import get_record
from tavola_client.api.moves import list_legal_moves, play_move
from tavola_client.api.players import register_player
from tavola_client.api.rulesets import list_rulesets
from tavola_client.api.seats import take_seat
from tavola_client.models import (
    Event,
    EventType,
    Game,
    GameStatus,
    LegalMoves,
    NewGame,
    NewPlayer,
    NewSeat,
    Outcome,
    PlayerKind,
    Problem,
    ProblemCode,
    RulesetSlug,
    RulesetSummary,
    StateLeonardo,
    StateLeopard,
    StateQuintisFontis,
    StateSiggil,
)
from tavola_client.types import UNSET, Unset

TABLES = {
    RulesetSlug.LEONARDO: StateLeonardo,
    RulesetSlug.QUINTIS_FONTIS: StateQuintisFontis,
    RulesetSlug.LEOPARD: StateLeopard,
    RulesetSlug.SIGGIL: StateSiggil,
}

Success = TypeVar("Success")


def check(holds: bool, what: str) -> None:
    """Ends the program with a sentence, unless a thing is as it has to be."""
    if not holds:
        sys.exit(what)


def must(parsed: Success | Problem | None) -> Success:
    """The body of an answer that must be a success; what else came ends the program."""
    if isinstance(parsed, Problem):
        sys.exit(f"{parsed.code}: {parsed.detail}")
    if parsed is None:
        sys.exit("an answer that the document does not know")
    return parsed


def tag(version: int) -> str:
    """A version as `If-Match` wants it."""
    return f'"{version}"'


def new_key() -> str:
    return str(uuid4())


def register(url: str) -> AuthenticatedClient:
    """Registers a player; answers a client that sends its token."""
    player = NewPlayer(name=f"python-{new_key()[:18]}", kind=PlayerKind.BOT)
    with Client(base_url=url) as visitor:
        registration = must(register_player.sync(client=visitor, body=player, idempotency_key=new_key()))
    return AuthenticatedClient(base_url=url, token=registration.token)


def play_too_late(player: AuthenticatedClient, game: UUID, legal: LegalMoves) -> None:
    """A move at a version that the game does not have: nothing may change, and the error says why."""
    headers = {"if_match": tag(legal.version + 1), "idempotency_key": new_key()}
    refused = play_move.sync_detailed(game, client=player, body=legal.moves[0], **headers)
    problem = refused.parsed
    if not isinstance(problem, Problem) or problem.code != ProblemCode.STALE_VERSION:
        sys.exit(f"expected stale-version, got {problem}")
    check(refused.status_code == HTTPStatus.PRECONDITION_FAILED, "a stale version is 412")
    check(problem.current_version == legal.version, "the error tells the version")


def all_events(player: AuthenticatedClient, game: UUID) -> list[Event]:
    """All events of a game, page by page."""
    events: list[Event] = []
    after: str | Unset = UNSET
    while True:
        page = must(list_events.sync(game, client=player, after=after, limit=100))
        events += page.items
        if page.next_after is None:
            return events
        after = page.next_after


def ranks(outcome: Outcome) -> list[tuple[int, int]]:
    return [(ranked.seat, ranked.rank) for ranked in outcome.ranking]


def check_end(player: AuthenticatedClient, game: Game, seats: int, moves: int) -> None:
    """Looks at the end of a game from all sides."""
    check(game.status == GameStatus.FINISHED and game.moves_count == moves, "the game is played to its end")
    check(isinstance(game.state, TABLES[game.ruleset]), "the table is of the ruleset")
    if game.outcome is None:
        sys.exit("a finished game has an outcome")
    ranking = ranks(game.outcome)
    check(len(ranking) == seats and min(rank for _, rank in ranking) == 1, "everybody is ranked")

    record = must(get_record.sync(game.id, client=player))
    check(len(record.moves) == moves, "the record has every move")
    check(ranks(record.outcome) == ranking, "record and game have one outcome")

    events = all_events(player, game.id)
    played = [event for event in events if event.type_ == EventType.MOVE_PLAYED and not isinstance(event.move, Unset)]
    check(len(played) == moves, f"{moves} moves, but {len(played)} events of moves")
    check(any(event.type_ == EventType.GAME_FINISHED for event in events), "the end is an event")


def play(url: str, ruleset: RulesetSummary) -> int:
    """Plays a game to its end; answers how many moves it took."""
    seats = min(max(ruleset.seats.min_, 2), ruleset.seats.max_)
    players = [register(url) for _ in range(seats)]
    wanted = NewGame(ruleset=ruleset.slug, seats=seats)
    game = must(create_game.sync(client=players[0], body=wanted, idempotency_key=new_key()))
    for player in players[1:]:
        must(take_seat.sync(game.id, client=player, body=NewSeat(), idempotency_key=new_key()))

    moves = 0
    while True:
        game = must(get_game.sync(game.id, client=players[0]))
        if game.to_move is None:
            break
        player = players[game.to_move.seat]
        legal = must(list_legal_moves.sync(game.id, client=player))
        if moves == 0:
            play_too_late(player, game.id, legal)
        headers = {"if_match": tag(legal.version), "idempotency_key": new_key()}
        send = partial(play_move.sync_detailed, game.id, client=player, body=random.choice(legal.moves), **headers)
        answer = send()
        played = must(answer.parsed)
        moves += 1
        check(played.game.version > legal.version, "a move makes a new version")
        check(answer.headers.get("ETag") == tag(played.game.version), "the ETag is the version")
        if moves == 1:
            again = send()
            check(again.headers.get("Idempotent-Replayed") == "true", "a repeat is answered as such")
            check(must(again.parsed).game.version == played.game.version, "a repeat plays nothing")

    check_end(players[0], game, seats, moves)
    return moves


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("the server's URL is missing")
    url = sys.argv[1]
    begun = time.monotonic()
    rulesets = must(list_rulesets.sync(client=Client(base_url=url))).items
    check(bool(rulesets), "a server has rulesets")
    played = [f"{ruleset.slug} {play(url, ruleset)}" for ruleset in rulesets]
    print(f"{len(played)} games (moves: {', '.join(played)}) in {time.monotonic() - begun:.1f} s")


if __name__ == "__main__":
    main()
