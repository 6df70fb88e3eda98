"""What somebody may be to somebody: relatives, friends, people of a profession, pets."""

from __future__ import annotations

from memlab.language.words import wordset

PERSONS = wordset("""
sister brother mother father mom mum dad wife husband son daughter girlfriend boyfriend partner fiance fiancé fiancée
fiancee aunt uncle cousin niece nephew grandmother grandfather grandma grandpa grandson granddaughter friend
colleague coworker co-worker boss manager neighbor neighbour roommate flatmate housemate teacher coach mentor
therapist doctor dentist landlord student teammate bandmate stepmother stepfather stepson stepdaughter stepbrother
stepsister sibling twin ex mother-in-law father-in-law sister-in-law brother-in-law godson goddaughter assistant
lawyer supervisor professor tutor trainer barber hairdresser
""")  # fmt: skip
PLURAL_PERSONS = wordset("""
parents kids children sons daughters sisters brothers friends cousins grandparents colleagues coworkers neighbors
neighbours roommates siblings twins students family fam grandkids grandchildren nieces nephews teammates in-laws
relatives uncles aunts
""")  # fmt: skip
PETS = wordset("""
dog cat puppy kitten hamster rabbit bunny parrot horse pony turtle tortoise goldfish fish bird snake lizard gecko
guinea pet pup ferret pig pets dogs cats puppies kittens
""")  # fmt: skip
