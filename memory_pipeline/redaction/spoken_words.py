"""The words with which people give a password, in the supported languages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_NO_ACCENT = str.maketrans({"ł": "l", "ø": "o", "ı": "i", "đ": "d", "ß": "ss", "å": "a"})
_SPELLED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "å": "aa", "æ": "ae"})


def spellings(words: Iterable[str]) -> tuple[str, ...]:
    """The words with accents, without them, and with "ue" for "ü"."""
    typed: dict[str, None] = {}
    for word in words:
        parts = unicodedata.normalize("NFD", word.translate(_NO_ACCENT))
        plain = "".join(part for part in parts if not "\u0300" <= part <= "\u036f")
        typed |= dict.fromkeys((word, unicodedata.normalize("NFC", plain), word.translate(_SPELLED)))
    return tuple(typed)


def any_of(words: Iterable[str]) -> str:
    """A pattern of any of the words in any spelling."""
    return "|".join(sorted(map(re.escape, spellings(words)), key=len, reverse=True))


# Names of a password; also found in compounds (Datenbankpasswort).
SPOKEN = spellings(
    (
        *("password", "passwd", "passphrase", "pass phrase", "passcode", "passwort", "passwört", "kennwort"),
        *("kennwört", "codewort", "losungswort", "mot de passe", "mots de passe", "phrase secrète", "phrase de passe"),
        *("contraseña", "clave", "frase de paso", "parola d'ordine", "parola d’ordine", "parola chiave", "senha"),
        *("palavra-passe", "palavra passe", "wachtwoord", "hasło", "hasła", "пароль", "пароля", "парол", "lösenord"),
        *("adgangskode", "passord", "salasana", "parola", "şifre", "heslo", "jelszó", "κωδικός", "mật khẩu"),
        *("kata sandi", "كلمة السر", "كلمة المرور", "رمز عبور", "סיסמה", "סיסמא", "पासवर्ड", "รหัสผ่าน"),
        *("密码", "密碼", "口令", "パスワード", "パスフレーズ", "暗証番号", "비밀번호", "암호", "패스워드"),
    )
)
# Names that also occur in code, where the text after a colon may be the name of something.
IN_CODE = ("pass",)
# Only as separate words: they have other meanings, so a user must be named with them.
SHORT = ("pw", "pwd", "mdp")
PINS = spellings(
    (
        *("pin", "geheimzahl", "access code", "door code", "alarm code", "entry code", "zugangscode", "türcode"),
        *("zugriffscode", "code d'accès", "code d’accès", "code secret", "código de acceso", "código de acesso"),
        *("codice di accesso", "codice d'accesso", "toegangscode", "kod dostępu", "код доступа"),
    )
)
KEYS = spellings(
    (
        *("token", "api key", "api-key", "apikey", "access key", "secret key", "signing key", "encryption key"),
        *("license key", "recovery key", "deploy key", "secret", "schlüssel", "geheimnis", "jeton"),
        *("clé d'api", "clé d’api", "clé api", "clé secrète", "clé d'accès", "llave", "chave", "chiave", "sleutel"),
        *("klucz", "токен", "ключ", "密钥", "密鑰", "令牌", "トークン", "apiキー", "秘密鍵", "アクセスキー", "토큰"),
    )
)
"""Other names of secrets, which occur far more often in code than in prose."""
# Prepositions between the name and its value, which introduce the owner: "for staging", "von der Datenbank".
PREPOSITIONS = (
    *("for", "of", "to", "on", "at", "in", "für", "von", "vom", "zum", "zur", "der", "des", "du", "de", "del"),
    *("della", "do", "da", "dos", "das", "per", "pour", "para", "en", "voor", "van", "till", "od", "dla", "от"),
    *("для", "к", "you", "we", "i", "that"),
)
IS = (
    *("is", "was", "are", "were", "will be", "would be", "should be", "could be", "might be", "used to be"),
    *("set to", "changed to", "reads", "equals", "becomes", "became", "ist", "war", "sind", "lautet", "lautete"),
    *("heißt", "hieß", "wäre", "sei", "wird", "wurde", "est", "était", "sera", "serait", "devient", "reste", "cest"),
    *("es", "era", "será", "sería", "fue", "sigue siendo", "é", "è", "e'", "sarà", "sarebbe", "seria", "quedó"),
    *("queda", "foi", "ficou", "fica"),
    *("luidt", "wordt", "zou", "jest", "brzmi", "będzie", "było", "är", "blir", "lyder", "var", "este", "это"),
    *("sont", "étaient", "son", "eran", "sono", "erano", "são", "eram", "zijn", "waren", "są", "были", "ought to be"),
    *("may be", "müsste", "dürfte", "sollte", "nämlich", "namely", "devrait être", "debería ser", "debe ser"),
    *("dovrebbe essere", "deve ser", "deveria ser", "moet zijn", "ska vara", "bör vara", "должен быть"),
    *("был", "будет", "είναι", "ήταν", "adalah", "هي", "هو", "है", "คือ"),
)
# Pronouns before a form of "is" after a comma: "mot de passe du coffre, c'est …".
PRONOUNS = (
    *("it", "that", "this", "which", "qui", "que", "che", "die", "das", "es", "der", "c'", "c’", "ce", "ça", "esto"),
    *("eso", "dat", "det", "это"),
)
# Words with another meaning in other languages.
IS_AFTER = {
    **dict.fromkeys(spellings(("hasło", "hasła")), ("to",)),
    "salasana": ("on", "oli", "olisi"),
    **dict.fromkeys(("heslo", "parola"), ("je", "bylo", "zní", "e")),
    **dict.fromkeys(("passord", "adgangskode"), ("er",)),
    **dict.fromkeys(("пароль", "парол"), ("теперь", "сейчас")),
    **dict.fromkeys(spellings(("şifre",)), ("şu an", "artık", "şimdi", "şimdilik")),
    **dict.fromkeys(spellings(("mật khẩu",)), ("là", "la")),
}
IS_TOGETHER = "(?:[改换換设設]成|[改换換设設][为為]|设置[为為]|就是|应该是|是|为|為|には|は|が|은|는|이|가|を|을|를)"
OBJECT = ("を", "을", "를")
"""Object markers in these scripts: the text after them may be the new value, or how it was changed."""
# Words that may be between "is" and the password.
FILLERS = (
    *("now", "currently", "still", "just", "simply", "again", "actually", "probably", "likely", "maybe", "temporarily"),
    *("always", "btw", "by the way", "of course", "i think", "the following", "this", "set to", "changed to"),
    *("jetzt", "nun", "aktuell", "derzeit", "bisher", "bislang", "momentan", "noch", "immer", "weiterhin", "einfach"),
    *("wohl", "also", "dann", "glaube ich", "übrigens", "natürlich", "wahrscheinlich", "vermutlich", "vielleicht"),
    *("maintenant", "désormais", "toujours", "actuellement", "donc", "simplement", "encore", "probablement"),
    *("sans doute", "au fait", "d'ailleurs", "ahora", "actualmente", "todavía", "aún", "siempre", "simplemente"),
    *("probablemente", "por cierto", "adesso", "ora", "attualmente", "ancora", "sempre", "probabilmente", "comunque"),
    *("agora", "atualmente", "ainda", "provavelmente", "aliás", "nu", "momenteel", "nog", "steeds", "gewoon"),
    *("waarschijnlijk", "teraz", "obecnie", "nadal", "chyba", "сейчас", "теперь", "такой", "наверное", "nyt", "nyní"),
)
OWN = ("my", "our", "mein", "unser", "mon", "notre", "mi", "nuestra", "mia", "nostra", "minha", "nossa", "mijn", "ons")
OWN_TOGETHER = ("我的", "我们的", "私の", "うちの", "내 ", "우리 ", "мой ", "наш ", "moje ", "mitt ", "min ")
USER = (
    *("user", "username", "login", "account", "benutzer", "benutzername", "nutzer", "konto", "usuario", "usuário"),
    *("utilisateur", "utente", "identifiant", "conta", "cuenta", "gebruiker", "пользователь", "логин"),
)
USER_TOGETHER = ("用户", "用戶", "账号", "帐号", "ユーザー", "사용자")
# "use X as the password", "X ist das Passwort"
AS = ("is", "as", "ist", "als", "est", "comme", "es", "como", "è", "come", "é", "jako", "som", "как")
# Verbs of change, after which "to" introduces the new value.
CHANGED = (
    r"(?:set|sets|change[ds]?|reset|resets|rotated?|updated?|switch(?:ed)?|gesetzt|ge(?:ä|ae)ndert|cambi\w+|chang\w+|mud\w+"
    r"|alter\w+|veranderd|gewijzigd|zmieni\w+|(?:по|с)менял\w*|сменил\w*|изменил\w*|(?:ä|a)ndra\w+|bytt?e?)"
)
BECAME = ("to", "into", "auf", "à", "en", "a", "para", "por", "in", "naar", "na", "на", "till", "til")
CREDENTIALS = (
    *("credentials", "creds", "login", "logins", "log in", "sign in", "zugangsdaten", "anmeldedaten"),
    *("identifiants", "credenciales", "credenziali", "credenciais", "inloggegevens"),
)
# Connecting words and participles: with one of them the text is a sentence about a password.
_JOINS = """
    not never no stored kept saved in on at the a an set validated checked needed used hashed encrypted reset
    changed being that what too always only also still now already read sent part like from for to as if when then
    this it its and or but by with without be been has have can must may will shall should would could does do done
    your his her their under over nicht im der die das ein eine zu und oder gespeichert dans pas le la les un une en
    et el los una y non nel nella il lo não na o os uma em niet een het de nie не нет в provided passed generated
    managed masked redacted
"""
# Adjectives that describe it if they are the only word.
_ADJECTIVES = """
    wrong incorrect required optional empty missing invalid expired same different hard case falsch richtig leer nötig
    abgelaufen obligatoire erroné vide incorrecta requerida vacía scaduta sbagliata errada vazia stronger weak weaker
    strong secure insecure correct valid visible hidden safe known unknown plain public private deprecated supported
    available present secret sensitive
"""
# After one of these the sentence is about something else: "the password policy is …", "the token and the host are …".
_OTHER = """
    policy policies field fields length lengths manager managers hashing hash column table file files page form hint
    prompt check rule rules name names id ids version type types count counts limit limits usage expiry algorithm
    strength format regex pattern label endpoint url user host port budget cost parameter header validation
    window size
"""
_CONJUNCTIONS = "and or but because und oder aber weil et ou mais y pero porque ma mas maar ale и но или"
JOINS = frozenset(_JOINS.split())
ADJECTIVES = frozenset(_ADJECTIVES.split())
OTHER = frozenset(_OTHER.split())
CONJUNCTIONS = frozenset(_CONJUNCTIONS.split())
ABOUT_TOGETHER = "必|不|错|錯|存|空|没|正|无|無|必要|間|违|由|用|在|保|的|可|被|应|需|없|틀|필요|저장|設|入|ハ"
